// CPU per signed answer, from the packet of the query to that of the reply, without sockets; beside another build.
//   npm run build && node bench/signed-cost.mjs [rounds] [--base ROOT]
// ROOT: another checkout with its `dist`. Zone: 1 000 names, NSEC, one signature of 64 octets for each RRset or outcome.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { base: { type: 'string' }, serve: { type: 'string' } },
})
const rounds = Number(positionals[0] ?? 9)
const NAMES = 1000
const ANSWERS = 100_000
const APEX = 'signed.example.'
const TYPES = { A: 1, CNAME: 5, SOA: 6, AAAA: 28, RRSIG: 46, NSEC: 47 }

const wire = (text) => {
  const labels = text.split('.').filter((label) => label !== '')
  return Uint8Array.of(...labels.flatMap((label) => [label.length, ...Buffer.from(label)]), 0)
}

/** Endpoints of each name with GEO and weight: for clients of two continents. */
const ENDPOINTS = ['GEO-EU', 'GEO-NA'].flatMap((code) => [
  { code, isDefault: code === 'GEO-EU', weight: 120 },
  { code, isDefault: code === 'GEO-EU', weight: 60 },
])

/** [owner, type, rdata of each record] of each RRset but signatures; sets of several records are steered. */
function contentOf() {
  const numbers = [0, 0, 0, 1, ...new Array(15).fill(0), 60]
  const soa = Uint8Array.of(...wire(`ns.${APEX}`), ...wire(`box.${APEX}`), ...numbers)
  const sets = [[APEX, TYPES.SOA, [soa]]]
  for (let i = 0; i < NAMES; i++) {
    sets.push([`n${i}.${APEX}`, TYPES.A, [Uint8Array.of(192, 0, 2, i & 255)]])
    sets.push([`c${i}.${APEX}`, TYPES.CNAME, [wire(`n${i}.${APEX}`)]])
    const steered = ENDPOINTS.map((_, k) => Uint8Array.of(192, 0, k, i & 255))
    sets.push([`g${i}.${APEX}`, TYPES.A, steered])
  }
  const owners = sets.map(([owner]) => owner).sort()
  // The apex sorts first.
  owners.splice(owners.indexOf(APEX), 1)
  owners.unshift(APEX)
  owners.forEach((owner, i) => {
    const next = wire(owners[(i + 1) % owners.length])
    sets.push([owner, TYPES.NSEC, [Uint8Array.of(...next, 0, 6, 0x40, 0, 0, 0, 0, 3)]])
  })
  return sets
}

function composeQuery(name, type, dnssecOk, ecs) {
  const client = [1, 2, 3].map(() => 1 + Math.floor(Math.random() * 220))
  const option = ecs ? [0, 8, 0, 7, 0, 1, 24, 0, ...client] : []
  const opt = [0, 0, 41, 4, 208, 0, 0, dnssecOk ? 0x80 : 0, 0, 0, option.length, ...option]
  const header = [1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]
  return Uint8Array.of(...header, ...wire(name), 0, type, 0, 1, ...opt)
}

const random = () => Math.random().toString(36).slice(2, 12)
const SHAPES = {
  'plain A': (i) => [`n${i}.${APEX}`, TYPES.A],
  'GEO + weight, ECS': (i) => [`g${i}.${APEX}`, TYPES.A],
  'CNAME, A': (i) => [`c${i}.${APEX}`, TYPES.A],
  NODATA: (i) => [`n${i}.${APEX}`, TYPES.AAAA],
  NXDOMAIN: () => [`${random()}.${APEX}`, TYPES.A],
}

/** Returns how to encode the steering of the ENDPOINTS, and what chooses among them. */
async function steering(part) {
  const { Random } = await part('base/random')
  const { FlatClassTrie } = await part('geo/class-trie')
  const { buildClasses } = await part('geo/classes/build-classes')
  const { scanGeoCode } = await part('geo/code')
  const { Database } = await part('geo/mmdb/database')
  const { bundledDatabasePath, loadFileSync } = await part('geo/mmdb/load')
  const { SteeringTable } = await part('steering/table')
  const database = new Database(loadFileSync(bundledDatabasePath()).image)
  const locator = {
    classify: async (codes) =>
      new FlatClassTrie(buildClasses({ databases: [database], nets: [], codes })),
    onChange: () => () => {},
  }
  const table = new SteeringTable({ locator, random: new Random(1), onError: console.error })
  const candidates = ENDPOINTS.map(({ code, ...endpoint }, k) => {
    return { ...endpoint, code: scanGeoCode(code), ttlSeconds: 60, rdataIndexes: [k] }
  })
  const words = table.compose(candidates, TYPES.A)
  await table.built()
  return {
    words,
    steerer: table.steerer(new Random(2), new Float64Array(new SharedArrayBuffer(8000))),
  }
}

/** The signature directory of a name whose address is steered: a signature for each endpoint, and one of NSEC. */
async function directory(part) {
  const { encodeDirectory } = await part('zone/image/signature-directory').catch(() => ({}))
  const signatures = ENDPOINTS.map((_, k) => k)
  const fixed = { ttlSeconds: 60, signaturesPerAnswer: 1 }
  const usual = (signature, rdataIndexes) => ({ signature, ttlSeconds: 60, rdataIndexes })
  return encodeDirectory?.([
    { ...fixed, type: TYPES.A, default: usual(0, [0]), answers: signatures },
    { ...fixed, type: TYPES.NSEC, default: usual(ENDPOINTS.length, []), answers: [] },
  ])
}

/** As `geoip` with `edns-subnet` does. */
function useSubnet(query) {
  query.clientAddress = query.ecsAddress
  query.clientFamily = query.ecsFamily
  query.clientBits = query.ecsSourceBits
  query.clientIsEcs = true
}

/** A server in this process, as the query path uses its parts. */
async function load(root) {
  const part = (path) => import(pathToFileURL(join(root, 'dist', `${path}.js`)).href)
  const { ZoneImage } = await part('zone/image/writer')
  const { ZoneAnswerer } = await part('zone/lookup/answer')
  const { Query } = await part('dns/message/query')
  const { Response } = await part('dns/message/response')
  const { parsePacket } = await part('dns/message/parse-query')
  const { composeAt } = await part('dns/message/compose')
  const { words, steerer } = await steering(part)
  const signatureWords = await directory(part)
  const { packetOctets, SCRATCH, takeRegion } = await part('base/packet-memory')
  const image = new ZoneImage()
  const zone = image.addZone(wire(APEX))
  const signatures = new Map()
  for (const [owner, type, rdata] of contentOf()) {
    const isSteered = rdata.length > 1
    const set = { type, ttlSeconds: 60, rdata, ...(isSteered ? { steering: words } : {}) }
    image.putRRset(zone, wire(owner), set)
    for (const k of rdata.keys()) {
      const fixed = [0, type, 13, 2, ...new Array(13).fill(1), k, ...wire(APEX)]
      const signature = Uint8Array.of(...fixed, ...new Array(64).fill(2))
      signatures.set(owner, [...(signatures.get(owner) ?? []), signature])
    }
  }
  for (const [owner, rdata] of signatures) {
    const set = { type: TYPES.RRSIG, ttlSeconds: 60, rdata }
    const isSteered = rdata.length > ENDPOINTS.length && signatureWords !== undefined
    image.putRRset(zone, wire(owner), isSteered ? { ...set, steering: signatureWords } : set)
  }
  for (const _ of image.updateChain(zone));
  image.publish()
  const answerer = new ZoneAnswerer(image.reader(), steerer)
  const [query, response] = [new Query(), new Response()]
  const at = takeRegion()
  const { direct, reader } = answerer
  const serve = (packet) => {
    packetOctets.set(packet, at)
    query.packet = packetOctets
    query.packetAt = at
    query.packetOctets = packet.length
    parsePacket(query, at, packet.length)
    response.reset(query)
    if (query.ecsFamily !== 0) useSubnet(query)
    reader.refresh()
    const found = reader.matchZone(query, 0)
    if (!direct.answer(query, response, found, reader.zoneLabel, true, true)) {
      answerer.answer(query, response)
    }
    return composeAt(query, response, SCRATCH, 1232)
  }
  return { serve }
}

function measure({ serve }, packets) {
  const before = process.cpuUsage()
  let octets = 0
  for (let i = 0; i < ANSWERS; i++) octets += serve(packets[i % packets.length])
  const { user } = process.cpuUsage(before)
  return { ns: (user * 1000) / ANSWERS, octets: octets / ANSWERS }
}

const cases = Object.entries(SHAPES).flatMap(([title, of]) =>
  [false, true].map((dnssecOk) => ({
    title: dnssecOk ? `${title}, DO` : title,
    compose: () =>
      Array.from({ length: NAMES }, (_, i) => {
        return composeQuery(...of(i), dnssecOk, title.includes('ECS'))
      }),
  })),
)

/** Measures the case of each number that comes. */
async function serveCases(root) {
  const build = await load(root)
  const packets = cases.map(({ compose }) => compose())
  process.on('message', (i) => process.send(measure(build, packets[i])))
  process.send('ready')
}

/** A process for each build, so that they do not share what the compiler learns. */
async function start(root) {
  const child = fork(fileURLToPath(import.meta.url), ['--serve', root])
  process.once('exit', () => child.kill())
  const next = () => once(child, 'message').then(([message]) => message)
  await next()
  return (i) => {
    child.send(i)
    return next()
  }
}

async function compare(roots) {
  const builds = await Promise.all(Object.values(roots).map(start))
  const figures = cases.map(() => builds.map(() => []))
  for (let round = -2; round < rounds; round++) {
    for (const i of cases.keys()) {
      for (const [k, ask] of builds.entries()) {
        const figure = await ask(i)
        if (round >= 0) figures[i][k].push(figure)
      }
    }
  }
  const names = Object.keys(roots)
  const heads = [
    ...names.map((name) => `${name}, ns`),
    ...names.slice(1).map(() => 'ratio (quartiles)'),
  ]
  console.log(
    `| case | octets | ${heads.join(' | ')} |\n|---|---:|${heads.map(() => '---:|').join('')}`,
  )
  for (const [i, { title }] of cases.entries()) {
    const [own, ...others] = figures[i].map((of) => of.map(({ ns }) => ns))
    const cells = [own, ...others].map((ns) => median(ns).toFixed(0))
    for (const other of others) cells.push(ratioText(own.map((ns, round) => ns / other[round])))
    console.log(`| ${title} | ${figures[i][0][0].octets.toFixed(0)} | ${cells.join(' | ')} |`)
  }
  process.exit(0)
}

function ratioText(ratios) {
  const sorted = ratios.toSorted((a, b) => a - b)
  const at = (share) => sorted[Math.round((sorted.length - 1) * share)].toFixed(2)
  return `${median(sorted).toFixed(2)} (${at(0.25)} to ${at(0.75)})`
}

if (values.serve !== undefined) await serveCases(values.serve)
else {
  const own = fileURLToPath(new URL('..', import.meta.url))
  await compare({
    Sextant: own,
    ...(values.base === undefined ? {} : { base: resolve(values.base) }),
  })
}
