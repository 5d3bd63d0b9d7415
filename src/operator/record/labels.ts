/** Labels that distinguish Kuadrant's objects. */
export const TYPE_LABEL = 'kuadrant.io/type'
export const ZONE_LABEL = 'kuadrant.io/coredns-zone-name'
export const AUTHORITATIVE_LABEL = 'kuadrant.io/authoritative-record'
export const DEFAULT_PROVIDER_LABEL = 'kuadrant.io/default-provider'
export const RECORD_FINALIZER = 'kuadrant.io/dns-record'

/** The gateway-local form of a record, which peers query. */
export const LOCAL = 'local'
/** The merged endpoints of all sites for a record's host. */
export const MERGED = 'merged'

/** On a DNSRecord that the operator wrote for an object of another kind: the word of the kind. */
export const SOURCE_LABEL = 'sextant.io/source'
