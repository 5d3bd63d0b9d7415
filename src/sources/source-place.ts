import type { ClusterRecords } from './kubernetes/acquire.ts'
import { DNSRECORD_WORD } from './objects/source-words.ts'

/** Where a block reads its records from. Only this folder distinguishes the kinds; others read `abilitiesOf`. */
export type SourcePlace =
  | { readonly kind: 'manifests' /** Absolute path. */; readonly directory: string }
  | ({ readonly kind: 'kubernetes' } & ClusterRecords)

/** What the records of a place allow. */
interface SourceAbilities {
  /** The property of a Corefile that names the place. */
  readonly property: string
  /** Absolute path of the files with the records, which are read at once and also offline; undefined = no files. */
  readonly directory: string | undefined
  /** This server probes their addresses and merges them with those of peers. False = an operator does both. */
  readonly isOurs: boolean
  /** Some of the records are made from objects that no operator reads. */
  readonly hasObjects: boolean
  /** Namespaces of the records; undefined = all. */
  readonly namespaces?: readonly string[] | undefined
}

export function abilitiesOf(place: SourcePlace): SourceAbilities {
  if (place.kind === 'manifests') {
    return { property: 'manifests', directory: place.directory, isOurs: true, hasObjects: false }
  }
  const { namespaces, sources = [] } = place
  const hasObjects = sources.some((word) => word !== DNSRECORD_WORD)
  return { property: 'kubeconfig', directory: undefined, isOurs: false, hasObjects, namespaces }
}

/** Returns the source's name in metrics; equal for equal places within one process. */
export function nameOf(place: SourcePlace): string {
  if (place.kind === 'manifests') return place.directory
  const { kubeconfig, context, sources = [] } = place
  return ['kubernetes', kubeconfig, context, sources.join()].filter((part) => part !== '').join(' ')
}

/** Returns the source's name without the kinds of objects, which a reload may change. */
export function bareNameOf(place: SourcePlace): string {
  return place.kind === 'manifests' ? nameOf(place) : nameOf({ ...place, sources: [] })
}

/** Returns the place with these kinds of objects, words of `SOURCE_WORDS`; undefined = it has DNSRecords only. */
export function withKinds(place: SourcePlace, kinds: readonly string[]): SourcePlace | undefined {
  if (place.kind === 'manifests') return undefined
  return kinds.join() === DNSRECORD_WORD ? place : { ...place, sources: kinds }
}
