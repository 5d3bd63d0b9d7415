import type { MergedEndpoint } from './merged-endpoint.ts'

type Content = Pick<MergedEndpoint, 'weight' | 'geoCodes' | 'isDefault' | 'location' | 'targets'>

/** Map key of what an endpoint serves, and to which clients. */
export function contentKey({ weight, geoCodes, isDefault, location, targets }: Content): string {
  return JSON.stringify([weight, geoCodes, isDefault, location, targets])
}

export function isAlias({ recordType }: Pick<MergedEndpoint, 'recordType'>): boolean {
  return recordType === 'CNAME'
}

/** True for an endpoint that is chosen by the location of the client. */
export function isPlaced({
  geoCodes,
  isDefault,
}: Pick<Content, 'geoCodes' | 'isDefault'>): boolean {
  return isDefault || geoCodes.length > 0
}

/** True for an endpoint that has nothing to distinguish it from others of its name and type. */
export function isPlain(e: Content & Pick<MergedEndpoint, 'setIdentifier'>): boolean {
  const isBare = e.setIdentifier === '' && e.weight === undefined && e.location === undefined
  return isBare && !isPlaced(e)
}
