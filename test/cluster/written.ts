import type { Cluster } from '../support/cluster.ts'

/** The field managers of our operators, in `metadata.managedFields`. */
const OURS = /^sextant/

interface Listed {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly managedFields?: readonly { readonly manager?: string }[]
  }
}

/** `resource namespace/name` of everything in a cluster, of whatever kind, that a process of ours has written to. */
export async function listWritten(cluster: Cluster): Promise<string[]> {
  const { groups } = await cluster.must('GET', '/apis')
  const versions = groups.map(
    (group: { preferredVersion: { groupVersion: string } }) =>
      `/apis/${group.preferredVersion.groupVersion}`,
  )
  const found: string[] = []
  for (const version of ['/api/v1', ...versions]) {
    const { resources } = await cluster.must('GET', version)
    for (const { name, verbs } of resources as { name: string; verbs: string[] }[]) {
      if (name.includes('/') || !['list', 'patch'].every((verb) => verbs.includes(verb))) continue
      const { items } = await cluster.must('GET', `${version}/${name}`)
      for (const { metadata } of (items ?? []) as Listed[]) {
        const isOurs = metadata.managedFields?.some(({ manager }) => OURS.test(manager ?? ''))
        if (isOurs) found.push(`${name} ${metadata.namespace ?? ''}/${metadata.name}`)
      }
    }
  }
  return found.sort()
}
