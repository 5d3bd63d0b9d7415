import type { ObjectKind } from './object-kind.ts'

/** All kinds of objects besides DNSRecord, in the order of the documentation. */
export const OBJECT_KINDS: readonly ObjectKind[] = []
