import t from 'tap'
import { FQDN_APIS, readPolicy } from '../../../../src/egress/policies/fqdn/fqdn-policy.ts'
import {
  beginState,
  FIRST_MS,
  GrantReader,
} from '../../../../src/operator/egress/fqdnnetworkpolicy/policy-states.ts'
import { FakeClock } from '../../../support/setup.ts'

const EXPIRATION_MS = 3_600_000
const NOW = { nowMs: 1000, wallMs: Date.parse('2026-01-01T12:00:00Z') }
const VALID = { '192.0.2.1/32': '2026-01-01T12:30:00Z' }
const EXPIRED = { '192.0.2.1/32': '2026-01-01T11:30:00Z' }
const entry = (ipExpiration: object) => ({ nextUdateTime: '2026-01-01T12:10:00Z', ipExpiration })

/** How long the NetworkPolicy waits, whose only name no server has answered for; `cache`: what the status has. */
function holdMs(cache: object, exists: boolean): number {
  const object = JSON.parse(
    JSON.stringify({
      metadata: { name: 'p', namespace: 'a', uid: 'u', generation: 1 },
      spec: { podSelector: {}, egress: [{ to: [{ fqdns: ['www.example.com'] }] }] },
      status: { state: 'Active', cache },
    }),
  )
  const policy = readPolicy(FQDN_APIS[0]!, object)
  const lookups = { endsOf: () => [], isSettled: () => false, dueMsOf: () => undefined }
  const settings = {
    dns: { overTcp: false, source: { kind: 'file', path: '' } },
    ipExpirationMs: EXPIRATION_MS,
    nextSyncMs: 1000,
    minimumSyncMs: 1000,
    skipsAaaa: false,
    maxConcurrentReconciles: 1,
    clusterNetworks: [],
    allowedNetworks: [],
  } as const
  const reader = new GrantReader(lookups, settings, new FakeClock())
  return reader.holdMs(policy, beginState(policy, object, EXPIRATION_MS, NOW), exists, NOW.nowMs)
}

// An entry without a valid address counted as no entry: with dead DNS servers, addresses that had
// expired before a restart were allowed for an hour after it.
t.test(
  'a restart without DNS keeps only addresses that the status does not call expired',
  async (t) => {
    const table = [
      {
        name: 'a valid address',
        cache: { 'www.example.com': entry(VALID) },
        exists: true,
        want: 0,
      },
      {
        name: 'an expired one',
        cache: { 'www.example.com': entry(EXPIRED) },
        exists: true,
        want: FIRST_MS,
      },
      {
        name: 'a name that does not exist',
        cache: { 'www.example.com': entry({}) },
        exists: true,
        want: FIRST_MS,
      },
      {
        name: 'no entry: the NetworkPolicy is adopted',
        cache: {},
        exists: true,
        want: EXPIRATION_MS,
      },
      { name: 'no NetworkPolicy', cache: {}, exists: false, want: FIRST_MS },
    ]
    for (const { name, cache, exists, want } of table) t.equal(holdMs(cache, exists), want, name)
  },
)
