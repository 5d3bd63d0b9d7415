import { EVENT_KINDS } from '../../base/telemetry/event-log.ts'
import { PROBLEM_KINDS } from '../../base/telemetry/problems.ts'
import { SHIFT_OUTCOMES } from '../../health/shift/shift.ts'
import { EXPLANATION } from './explanation-schema.ts'
import { FLEET_SCHEMAS } from './fleet-routes.ts'
import { HEALTH_SCHEMAS } from './health-routes.ts'
import { MAP_SCHEMAS } from './map-routes.ts'
import { COUNT, FLAG, list, nullable, object, type Schema, TEXT, TIME } from './schema.ts'
import { TRAFFIC_SCHEMAS } from './traffic-routes.ts'

const REF = (name: string): Schema => ({ $ref: `${name}#` })
const PLUGIN_NOTE = object({ plugin: TEXT, text: TEXT })

const ENDPOINT_COUNTS = object({
  served: COUNT,
  standby: COUNT,
  slowStart: COUNT,
  down: COUNT,
  drained: COUNT,
})

const DRAIN = { id: TEXT, selector: TEXT, reason: TEXT, actor: TEXT, file: TEXT }
const DRAIN_TIMES = { created: TIME, until: TIME }

/** The schemas of replies by name; `NAME#` refers to one. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  Problem: object({
    type: TEXT,
    title: TEXT,
    status: { type: 'integer' },
    detail: TEXT,
  }),
  ServerProblem: object({
    kind: { type: 'string', enum: [...PROBLEM_KINDS] },
    plugin: { type: 'string', description: 'the directive that reports it' },
    place: { type: 'string', description: 'file and line, address of a peer, or `kubernetes`' },
    object: { type: 'string', description: 'what has the problem' },
    reason: { type: 'string', description: 'what is wrong, what is served, and the fix' },
  }),
  Zone: object({
    zone: TEXT,
    directive: TEXT,
    source: TEXT,
    serial: nullable('integer', 'SOA serial; null = no version is loaded'),
    records: nullable('integer', 'DNSRecords; null = the zone is not made of DNSRecords'),
    rrsets: nullable('integer', 'RRsets; null = unknown'),
    conflicts: COUNT,
    allDown: { ...list(TEXT), description: 'names and types, and what is served instead' },
    exhausted: { ...list(TEXT), description: 'names and types, and their failover lists' },
    endpoints: { anyOf: [ENDPOINT_COUNTS, { type: 'null' }] },
  }),
  Endpoint: object({
    zone: TEXT,
    name: TEXT,
    type: TEXT,
    setIdentifier: TEXT,
    targets: list(TEXT),
    state: { type: 'string', enum: ['down', 'drained', 'partly down', 'slow start'] },
    detail: TEXT,
    record: { type: 'string', description: 'namespace/name of the DNSRecord' },
  }),
  Peer: object({
    peer: TEXT,
    site: TEXT,
    isUp: FLAG,
    ageSeconds: nullable('number', 'since it last confirmed its data; null = never'),
    serial: nullable('integer', 'of its zone kdrnt; null = unknown'),
    endpoints: COUNT,
    refused: COUNT,
    error: TEXT,
  }),
  Quorum: object({
    zones: list(TEXT),
    isIsolated: FLAG,
    heard: { ...COUNT, description: 'sites that are heard, with this site' },
    sites: COUNT,
    quorum: { ...COUNT, description: 'sites that must find an address down' },
    holdDownSeconds: { type: 'number' },
    members: list(
      object({
        site: TEXT,
        peers: list(TEXT),
        state: {
          type: 'string',
          enum: ['this site', 'isolated', 'heard', 'silent', 'never heard'],
        },
        ageSeconds: nullable('number', 'since it was last heard; null = never'),
        observations: { ...COUNT, description: 'addresses of other sites that it reports on' },
      }),
    ),
    addresses: list(
      object({
        host: TEXT,
        address: TEXT,
        sites: { ...list(TEXT), description: 'the sites that have the address' },
        isDown: FLAG,
        isDisputed: FLAG,
        up: { ...list(TEXT), description: 'sites that report it up' },
        down: { ...list(TEXT), description: 'sites that report it down' },
        holdDownUntil: nullable('string', 'RFC 3339; null = no hold-down runs'),
        reason: TEXT,
      }),
    ),
    addressesOmitted: COUNT,
  }),
  Shift: object(
    {
      record: { type: 'string', description: 'namespace/name of one of its DNSRecords' },
      records: { ...COUNT, description: 'DNSRecords with the shift' },
      to: { type: 'string', description: 'the set identifier that traffic moves to' },
      state: { type: 'string', enum: [...SHIFT_OUTCOMES] },
      step: { ...COUNT, description: 'from 1' },
      steps: { ...COUNT, description: 'number of steps' },
      share: nullable('number', 'percent; null = the shift is reverted'),
      until: nullable('string', 'RFC 3339: when the step ends; null = the shift is over'),
      reason: { type: 'string', description: 'why the shift was reverted' },
    },
    {
      order: {
        ...object({ id: TEXT, name: TEXT, actor: TEXT, reason: TEXT, created: TIME }),
        description: 'who ordered it; missing = an annotation asks for it',
      },
    },
  ),
  Status: object({
    version: TEXT,
    pid: COUNT,
    started: TIME,
    now: TIME,
    threads: COUNT,
    corefile: object({ path: TEXT, loaded: TIME }),
    notReady: list(PLUGIN_NOTE),
    notes: list(PLUGIN_NOTE),
    problems: { ...list(REF('ServerProblem')), description: 'what is wrong, the worst first' },
    problemCounts: {
      type: 'object',
      additionalProperties: COUNT,
      description: 'number of all problems, by kind',
    },
    zones: list(REF('Zone')),
    signing: {
      ...list(
        object({
          zone: TEXT,
          policy: TEXT,
          denial: TEXT,
          made: { ...COUNT, description: 'signatures made since the zone was opened' },
          reused: COUNT,
          expires: nullable('string', 'RFC 3339: when the first signature expires'),
          fault: { type: 'string', description: 'why the zone cannot be signed' },
        }),
      ),
      description: 'zones that the server signs',
    },
    keys: {
      ...list(
        object({
          zone: TEXT,
          id: TEXT,
          algorithm: TEXT,
          tag: COUNT,
          role: { type: 'string', enum: ['csk', 'ksk', 'zsk'] },
          state: {
            type: 'string',
            enum: ['unused', 'published', 'ready', 'active', 'retiring', 'public'],
          },
          nextStep: nullable(
            'string',
            'RFC 3339; null = others have to act first, or no step is planned',
          ),
          nextStepText: nullable(
            'string',
            'what the next step of the zone is; null = no step is planned',
          ),
        }),
      ),
      description: 'keys of the zones that the server signs',
    },
    endpoints: { ...list(REF('Endpoint')), description: 'those that are not served in full' },
    endpointsOmitted: COUNT,
    peers: list(REF('Peer')),
    quorums: { ...list(REF('Quorum')), description: 'one per server block with `probe-peers`' },
    shifts: list(REF('Shift')),
    shiftsOmitted: COUNT,
    databases: list(object({ file: TEXT, built: TIME, fault: TEXT })),
    snapshots: list(
      object({
        file: TEXT,
        isServed: FLAG,
        ageSeconds: nullable('number', 'of the state in the file; null = unknown'),
        octets: COUNT,
      }),
    ),
    drops: { type: 'object', additionalProperties: COUNT },
  }),
  Event: object(
    {
      id: COUNT,
      time: TIME,
      actor: object({ kind: { type: 'string', enum: [...EVENT_KINDS] }, name: TEXT }),
    },
    {
      zone: TEXT,
      serial: COUNT,
      name: { type: 'string', description: 'owner name of the changed RRset' },
      type: TEXT,
      before: { ...list(TEXT), description: 'endpoints of the RRset before the change' },
      after: list(TEXT),
      text: TEXT,
    },
  ),
  Events: object({
    events: list(REF('Event')),
    lastId: { ...COUNT, description: 'id of the last event of the server' },
  }),
  ...HEALTH_SCHEMAS,
  Explanation: EXPLANATION,
  ...TRAFFIC_SCHEMAS,
  ...MAP_SCHEMAS,
  Drain: object(DRAIN, DRAIN_TIMES),
  AppliedDrain: object({ ...DRAIN, endpoints: COUNT, records: COUNT }, DRAIN_TIMES),
  ...FLEET_SCHEMAS,
}
