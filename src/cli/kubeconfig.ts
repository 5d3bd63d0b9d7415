import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { InputError } from '../base/errors.ts'

/** Returns the file that kubectl would use; '' = the service account of this Pod. `named`: of the user; '' = none. */
export function findKubeconfig(named: string): string {
  const listed = (process.env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '')
  const paths = listed.length > 0 ? listed : [join(homedir(), '.kube/config')]
  const found = named || paths.find((path) => existsSync(path))
  if (found !== undefined) return resolve(found)
  if (process.env.KUBERNETES_SERVICE_HOST) return ''
  throw new InputError(undefined, `${paths[0]} does not exist: use --kubeconfig FILE`)
}
