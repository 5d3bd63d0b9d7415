import { EventLog } from '../../src/base/telemetry/event-log.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import type { ServerStatus } from '../../src/base/telemetry/status.ts'
import type { AdminSite } from '../../src/plugin/admin.ts'
import { FakeClock } from './setup.ts'

/** A status with one of everything. */
export const STATUS: ServerStatus = {
  version: '0.1.0',
  pid: 1,
  started: '2026-01-01T00:00:00.000Z',
  now: '2026-01-01T00:01:00.000Z',
  threads: 3,
  corefile: { path: 'Corefile', loaded: '2026-01-01T00:00:01.000Z' },
  notReady: [{ plugin: 'kuadrant', text: 'records are not loaded yet' }],
  notes: [],
  problems: [
    {
      kind: 'refused-record',
      plugin: 'kuadrant',
      place: 'records/app.yaml:3',
      object: 'default/app',
      reason: 'default/app is refused: unknown geo code "XX"',
    },
  ],
  problemCounts: { 'refused-record': 3 },
  zones: [
    {
      zone: 'example.org.',
      directive: 'kuadrant',
      source: 'manifests records',
      serial: 2026010100,
      records: 3,
      rrsets: 7,
      conflicts: 0,
      allDown: ['www.example.org. A: health and drains are ignored'],
      exhausted: ['app.example.org. A: failover list GEO-EU is exhausted; the answer is empty'],
      endpoints: { served: 5, standby: 1, slowStart: 0, down: 2, drained: 4 },
    },
    {
      zone: 'example.net.',
      directive: 'file',
      source: 'db.example.net',
      serial: null,
      records: null,
      rrsets: null,
      conflicts: 0,
      allDown: [],
      exhausted: [],
      endpoints: null,
    },
  ],
  endpoints: [
    {
      zone: 'example.org.',
      name: 'www.example.org.',
      type: 'A',
      setIdentifier: 'na1',
      targets: ['192.0.2.1'],
      state: 'down',
      detail: '',
      record: 'default/www',
    },
  ],
  endpointsOmitted: 0,
  peers: [
    {
      peer: '192.0.2.53:53',
      site: 'eu1',
      isUp: false,
      ageSeconds: null,
      serial: null,
      endpoints: 0,
      refused: 0,
      error: 'timeout',
    },
  ],
  quorums: [
    {
      zones: ['example.org.'],
      isIsolated: false,
      heard: 2,
      sites: 3,
      quorum: 2,
      holdDownSeconds: 60,
      members: [
        { site: 'eu2', peers: [], state: 'this site', ageSeconds: 0, observations: 2 },
        {
          site: 'eu1',
          peers: ['192.0.2.53:53'],
          state: 'silent',
          ageSeconds: 75,
          observations: 1,
        },
      ],
      addresses: [
        {
          host: 'www.example.org',
          address: '192.0.2.1',
          sites: ['eu1'],
          isDown: false,
          isDisputed: true,
          up: [],
          down: ['eu2'],
          holdDownUntil: '2026-01-01T00:02:00Z',
          reason: 'not down',
        },
      ],
      addressesOmitted: 1,
    },
  ],
  shifts: [
    {
      record: 'default/app',
      records: 2,
      to: 'eu-2',
      state: 'running',
      step: 2,
      steps: 3,
      share: 62.5,
      until: '2026-01-01T00:02:00Z',
      reason: '',
    },
    {
      record: 'default/shop',
      records: 1,
      to: 'na-2',
      state: 'reverted',
      step: 1,
      steps: 2,
      share: null,
      until: null,
      reason: '192.0.2.9 is down',
    },
  ],
  shiftsOmitted: 1,
  signing: [
    {
      ...{ zone: 'k.example.com.', policy: 'default', denial: 'nsec', made: 12, reused: 30 },
      ...{ expires: '2026-01-15T00:00:00.000Z', fault: '' },
    },
  ],
  keys: [
    {
      ...{ zone: 'k.example.com.', id: 'Kk.example.com.+013+00895', algorithm: 'ECDSAP256SHA256' },
      ...{ tag: 895, role: 'csk', state: 'ready', nextStep: null },
      nextStepText: 'wait until the parent has the DS of CSK 895 alone',
    },
  ],
  databases: [{ file: 'city.mmdb', built: '2026-01-01T00:00:00.000Z', fault: '' }],
  snapshots: [{ file: 'zones.snapshot', isServed: false, ageSeconds: 1.5, octets: 4096 }],
  drops: { overloaded: 3 },
}

function fail(message: string): never {
  throw new Error(message)
}

/** A site of an admin API on a free port of loopback, and what it logs. */
export function adminSite(changed: Partial<AdminSite> = {}) {
  const lines: string[] = []
  const events = new EventLog(new FakeClock())
  const site: AdminSite = {
    address: '127.0.0.1:0',
    position: { file: 'Corefile', line: 2 },
    tokens: undefined,
    readsOpenly: false,
    certificate: undefined,
    hosts: [],
    console: false,
    log: createLogger(
      'plugin/admin',
      (line) => lines.push(line),
      () => false,
    ),
    status: () => STATUS,
    events: () => events,
    drains: {
      list: () => ({ drains: [], drainsOmitted: 0 }),
      add: async () => fail('unused'),
      end: async () => [],
    },
    names: async () => ({ names: [], isComplete: true }),
    traffic: () => undefined,
    fleet: { list: async () => [], ask: async () => fail('unused') },
    health: { list: async () => undefined },
    shifts: {
      list: () => ({ shifts: [], shiftsOmitted: 0 }),
      begin: async () => fail('unused'),
      end: () => [],
    },
    explain: async () => undefined,
    whatIf: async () => undefined,
    map: async () => undefined,
    ...changed,
  }
  return { site, events, lines }
}
