import type { ObjectKind } from '../object-kind.ts'
import { SingleReader } from '../single-reader.ts'
import { readDnsEndpoint } from './dnsendpoint.ts'

/** DNSEndpoints of external-dns. */
export const DNSENDPOINT: ObjectKind = {
  word: 'dnsendpoint',
  resources: [
    {
      group: 'externaldns.k8s.io',
      version: 'v1alpha1',
      plural: 'dnsendpoints',
      kind: 'DNSEndpoint',
    },
  ],
  open: () => new SingleReader(readDnsEndpoint),
}
