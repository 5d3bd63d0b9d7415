import type { Informer } from '../../kube/informer.ts'

const NOT_FOUND = 404

/** Why kinds of objects can't be read; '' = they can. A cluster may lack the definitions of some, but not of all. */
export function reasonOfKinds(informers: readonly Informer[]): string {
  const failed = informers.filter(({ reason }) => reason !== '')
  if (failed.length < informers.length && failed.every(isMissing)) return ''
  return failed[0]?.reason ?? ''
}

/** True if the cluster lacks the definition. */
function isMissing({ watches }: Informer): boolean {
  return watches.every(({ failureStatus }) => failureStatus === NOT_FOUND)
}
