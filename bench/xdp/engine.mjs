// A server without sockets, from the build in `root`: a zone of plain names, and one with GEO, weights and a chain of CNAMEs.
import { join } from 'node:path'
import { ENDPOINTS, GEO_NAME, GEO_ZONE, PLAIN_ZONE, simpleName } from '../peers/content.mjs'
import { CHAIN_HOST } from '../shapes/shapes.mjs'

const A = 1
const CNAME = 5
const REPLY_OCTETS_MAX = 4096

export const wireOf = (name) =>
  Uint8Array.from([...name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]), 0])

export async function makeEngine(root, database, names) {
  const load = (path) => import(join(root, 'dist', `${path}.js`))
  const { NO_FALLTHROUGH } = await load('plugin/arguments/fallthrough')
  const { systemClock } = await load('base/clock')
  const { Random } = await load('base/random')
  const { buildClasses } = await load('geo/classes/build-classes')
  const { FlatClassTrie } = await load('geo/class-trie')
  const { scanGeoCode } = await load('geo/code')
  const { Database } = await load('geo/mmdb/database')
  const { CHAIN_END } = await load('plugin/chain-end')
  const { ClientFromSubnet } = await load('plugins/geoip/geoip')
  const { KuadrantHandler } = await load('plugins/kuadrant/kuadrant')
  const { ServerCounts } = await load('server/counters')
  const { BatchClock } = await load('server/data/clocks')
  const { ExchangePool } = await load('server/exchange-pool')
  const { Server } = await load('server/server')
  const { SteeringTable } = await load('steering/table')
  const { ZoneImage } = await load('zone/image/writer')
  const { ZoneAnswerer } = await load('zone/lookup/answer')

  const databases = [new Database({ file: 'bench', bytes: database })]
  const table = new SteeringTable({
    locator: {
      classify: async (codes) => new FlatClassTrie(buildClasses({ databases, nets: [], codes })),
      onChange: () => () => {},
    },
    random: new Random(1),
    onError: console.error,
  })
  const image = new ZoneImage()
  const soa = { type: 6, ttlSeconds: 60, rdata: [new Uint8Array(22)] }
  const addZone = (name) => {
    const zone = image.addZone(wireOf(name))
    image.putRRset(zone, wireOf(name), soa)
    return zone
  }
  const plain = addZone(PLAIN_ZONE)
  for (let i = 0; i < names; i++) {
    const rdata = [Uint8Array.of(10, i >> 16, i >> 8, i)]
    image.putRRset(plain, wireOf(simpleName(i)), { type: A, ttlSeconds: 300, rdata })
  }
  const geo = addZone(GEO_ZONE)
  /** `targets`: with code and weight, if they have one. */
  const put = (name, type, targets) => {
    const candidates = targets.map(({ code, weight }, i) => ({
      code: code && scanGeoCode(`GEO-${code}`),
      isDefault: code === 'EU',
      weight,
      ttlSeconds: 60,
      rdataIndexes: [i],
    }))
    const steering = table.compose(candidates, type)
    const rdata = targets.map(({ rdata }) => rdata)
    image.putRRset(geo, wireOf(name), { type, ttlSeconds: 60, rdata, steering })
  }
  const address = (text) => Uint8Array.from(text.split('.'), Number)
  const places = Object.entries(ENDPOINTS)
  put(
    GEO_NAME,
    A,
    places.flatMap(([code, all]) =>
      all.map((one) => ({ ...one, code, rdata: address(one.address) })),
    ),
  )
  const alias = `klb.${CHAIN_HOST}`
  put(CHAIN_HOST, CNAME, [{ rdata: wireOf(alias) }])
  put(
    alias,
    CNAME,
    places.map(([code]) => ({ code, rdata: wireOf(`${code.toLowerCase()}.${alias}`) })),
  )
  for (const [code, all] of places) {
    const gateway = (i) => `g${i}-${code.toLowerCase()}.${alias}`
    const targets = all.map(({ weight }, i) => ({ weight, rdata: wireOf(gateway(i)) }))
    put(`${code.toLowerCase()}.${alias}`, CNAME, targets)
    all.forEach((one, i) => {
      put(gateway(i), A, [{ rdata: address(one.address) }])
    })
  }
  await table.built()
  image.publish()

  const answerer = new ZoneAnswerer(image.reader(), table.steerer(new Random(1)))
  const block = (zone) => ({
    zone: wireOf(zone),
    zoneText: `${zone}.`,
    chain: new ClientFromSubnet(new KuadrantHandler(CHAIN_END, { answerer }, NO_FALLTHROUGH)),
    filters: [],
    viewName: '',
    bufsizeOctets: 1232,
    debug: false,
  })
  const clock = new BatchClock(systemClock)
  const server = new Server({
    address: 'dns://:53',
    blocks: [PLAIN_ZONE, GEO_ZONE].map(block),
    clock,
    random: new Random(1),
    log: console,
    counters: new ServerCounts(),
  })
  return { clock, image, handler: new ExchangePool(server, REPLY_OCTETS_MAX) }
}

/** A query of type A; `hasSubnet`: with a client subnet. */
export function messageOf(name, hasSubnet, subnet = [81, 2, 69]) {
  const header = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, hasSubnet ? 1 : 0]
  const option = [0, 8, 0, 7, 0, 1, 24, 0, ...subnet]
  const opt = [0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, option.length, ...option]
  return Uint8Array.from([...header, ...wireOf(name), 0, A, 0, 1, ...(hasSubnet ? opt : [])])
}
