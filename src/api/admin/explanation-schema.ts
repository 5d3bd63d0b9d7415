import { COUNT, FLAG, list, object, type Schema, TEXT, TIME } from './schema.ts'

const SHARE: Schema = { type: 'number', description: 'probability, 0 to 1' }

const ORIGIN = object(
  { kind: { type: 'string', enum: ['manifest', 'cluster', 'peers', 'corefile', 'default'] } },
  {
    file: TEXT,
    line: COUNT,
    site: TEXT,
    peers: list(object({ peer: TEXT, site: TEXT, ageSeconds: { type: 'number' } })),
  },
)

const ENDPOINT = object(
  {
    record: TEXT,
    origin: ORIGIN,
    setIdentifier: TEXT,
    codes: list(TEXT),
    location: TEXT,
    ttlSeconds: COUNT,
    targets: list(TEXT),
    out: list(object({ target: TEXT, reason: TEXT })),
    dropped: TEXT,
    share: SHARE,
    isChosen: FLAG,
  },
  {
    weight: { type: 'number' },
    distanceKm: { type: 'number' },
    alias: { type: 'string', description: 'of an ALIAS endpoint: its target' },
  },
)

const CANDIDATE = object(
  { endpoint: COUNT, share: SHARE, isStandby: FLAG },
  { weight: { type: 'number' }, rank: COUNT },
)

const RUNG = object(
  { rung: TEXT, code: TEXT, outcome: TEXT, candidates: list(CANDIDATE) },
  { nearest: TEXT, nearer: list(object({ endpoint: COUNT, reason: TEXT })) },
)

const DRAW = object({ value: COUNT, below: COUNT })

const CHOICE = object(
  {
    rungs: list(RUNG),
    decided: COUNT,
    isSticky: FLAG,
  },
  {
    draw: DRAW,
    picks: list(object({ endpoint: COUNT }, { draw: DRAW })),
    stickyPrefix: TEXT,
    failover: object({ order: list(TEXT), serving: TEXT, isClosed: FLAG }),
  },
)

const STEP = object(
  {
    name: TEXT,
    owner: TEXT,
    type: TEXT,
    zone: TEXT,
    rdata: list(TEXT),
    ttlSeconds: COUNT,
    ttlReason: TEXT,
    notes: list(TEXT),
  },
  { serial: COUNT, endpoints: list(ENDPOINT), choice: CHOICE },
)

export const EXPLANATION: Schema = object(
  {
    name: TEXT,
    type: TEXT,
    seed: COUNT,
    client: object({ address: TEXT, source: TEXT, reason: TEXT }),
    server: object({ address: TEXT, zone: TEXT, view: TEXT, directive: TEXT }),
    steps: list(STEP),
    end: object({ kind: TEXT, text: TEXT }),
    answer: list(TEXT),
    rcode: TEXT,
    reply: { type: 'string', description: 'the DNS message in base64; empty = none' },
  },
  {
    location: object({
      databases: list(
        object({ file: TEXT, type: TEXT, built: TIME, prefix: TEXT, isIgnored: FLAG }),
      ),
      net: TEXT,
      asn: TEXT,
      subdivisions: list(TEXT),
      country: TEXT,
      continent: TEXT,
      coordinates: TEXT,
    }),
    scope: object({ bits: COUNT, reason: TEXT }),
    stored: object({ ageSeconds: COUNT, lifetimeSeconds: COUNT }),
  },
)
