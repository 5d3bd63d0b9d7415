// What every server is asked to serve, in no server's own language.

export const GEO_ZONE = 'k.example.com'
export const GEO_NAME = `app.${GEO_ZONE}`
export const PLAIN_ZONE = 'plain.example'

/** The GEO zone again; servers sign it themselves. */
export const SIGNED_GEO_ZONE = 's.example.com'
export const SIGNED_GEO_NAME = `app.${SIGNED_GEO_ZONE}`

/** Endpoints of GEO_NAME by continent; clients from elsewhere get those of EU. */
export const ENDPOINTS = {
  EU: [
    { address: '192.0.2.1', weight: 120 },
    { address: '192.0.2.2', weight: 60 },
  ],
  NA: [{ address: '192.0.2.11', weight: 120 }],
}

/** One client network of each continent, as the first three octets of a /24. */
export const CLIENTS = { EU: [81, 2, 69], NA: [8, 8, 8] }

export const simpleName = (i) => `n${i}.${PLAIN_ZONE}`
export const plainAddress = (i) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`

/** A master file of a zone with a SOA, a name server and those lines. */
export function* masterFile(origin, lines) {
  yield `$ORIGIN ${origin}.\n`
  yield '@ 300 IN SOA ns1 hostmaster 1 7200 1800 86400 60\n@ 300 IN NS ns1\nns1 300 IN A 192.0.2.53\n'
  yield* lines
}

export function* plainLines(names) {
  for (let i = 0; i < names; i++) yield `n${i} 300 IN A ${plainAddress(i)}\n`
}

export const CASES = {
  geo: { title: 'GEO + weight + ECS, one name', geo: true, names: 0 },
  1: { title: 'plain A, one name', names: 1 },
  '1k': { title: 'plain A, 1 000 names', names: 1000 },
  '100k': { title: 'plain A, 100 000 names', names: 100_000 },
  '1m': { title: 'plain A, 1 000 000 names', names: 1_000_000 },
}
/** A million names take most servers long to load, so that case has to be asked for. */
export const DEFAULT_CASES = ['geo', '1', '1k', '100k']
