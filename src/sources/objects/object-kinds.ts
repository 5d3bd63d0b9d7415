import { DNSENDPOINT } from './dnsendpoint/dnsendpoint-kind.ts'
import { GATEWAY } from './gateway/gateway-kind.ts'
import { INGRESS } from './ingress/ingress-kind.ts'
import type { ObjectKind } from './object-kind.ts'
import { SERVICE } from './service/service-kind.ts'

/** All kinds of objects besides DNSRecord, in the order of SOURCE_WORDS, which has their words too. */
export const OBJECT_KINDS: readonly ObjectKind[] = [DNSENDPOINT, GATEWAY, SERVICE, INGRESS]

/** Returns the kinds with these words, without DNSRecord. */
export function kindsOf(words: readonly string[]): readonly ObjectKind[] {
  return OBJECT_KINDS.filter(({ word }) => words.includes(word))
}
