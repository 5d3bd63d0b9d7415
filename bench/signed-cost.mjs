// CPU per signed answer, from the packet of the query to that of the reply, without sockets; beside another build.
//   npm run build && node bench/signed-cost.mjs [rounds] [--base ROOT]
// ROOT: another checkout with its `dist`. Zone: 1 000 names, NSEC, one signature of 64 octets for each RRset.
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { base: { type: 'string' } },
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

/** [owner, type, rdata] of each RRset but signatures. */
function contentOf() {
  const numbers = [0, 0, 0, 1, ...new Array(15).fill(0), 60]
  const soa = Uint8Array.of(...wire(`ns.${APEX}`), ...wire(`box.${APEX}`), ...numbers)
  const sets = [[APEX, TYPES.SOA, soa]]
  for (let i = 0; i < NAMES; i++) {
    sets.push([`n${i}.${APEX}`, TYPES.A, Uint8Array.of(192, 0, 2, i & 255)])
    sets.push([`c${i}.${APEX}`, TYPES.CNAME, wire(`n${i}.${APEX}`)])
  }
  const owners = sets.map(([owner]) => owner).sort()
  // The apex sorts first.
  owners.splice(owners.indexOf(APEX), 1)
  owners.unshift(APEX)
  owners.forEach((owner, i) => {
    const next = wire(owners[(i + 1) % owners.length])
    sets.push([owner, TYPES.NSEC, Uint8Array.of(...next, 0, 6, 0x40, 0, 0, 0, 0, 3)])
  })
  return sets
}

function composeQuery(name, type, dnssecOk) {
  const opt = [0, 0, 41, 4, 208, 0, 0, dnssecOk ? 0x80 : 0, 0, 0, 0]
  const header = [1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]
  return Uint8Array.of(...header, ...wire(name), 0, type, 0, 1, ...opt)
}

const random = () => Math.random().toString(36).slice(2, 12)
const SHAPES = {
  'plain A': (i) => [`n${i}.${APEX}`, TYPES.A],
  'CNAME, A': (i) => [`c${i}.${APEX}`, TYPES.A],
  NODATA: (i) => [`n${i}.${APEX}`, TYPES.AAAA],
  NXDOMAIN: () => [`${random()}.${APEX}`, TYPES.A],
}

/** A server in this process, as the query path uses its parts. */
async function load(name, root) {
  const part = (path) => import(pathToFileURL(join(root, 'dist', `${path}.js`)).href)
  const { ZoneImage } = await part('zone/image/writer')
  const { ZoneAnswerer } = await part('zone/lookup/answer')
  const { Query } = await part('dns/message/query')
  const { Response } = await part('dns/message/response')
  const { parsePacket } = await part('dns/message/parse-query')
  const { composeAt } = await part('dns/message/compose')
  const { packetOctets, SCRATCH, takeRegion } = await part('base/packet-memory')
  const image = new ZoneImage()
  const zone = image.addZone(wire(APEX))
  const signatures = new Map()
  for (const [owner, type, rdata] of contentOf()) {
    image.putRRset(zone, wire(owner), { type, ttlSeconds: 60, rdata: [rdata] })
    const fixed = [0, type, 13, 2, ...new Array(14).fill(1), ...wire(APEX)]
    const signature = Uint8Array.of(...fixed, ...new Array(64).fill(2))
    signatures.set(owner, [...(signatures.get(owner) ?? []), signature])
  }
  for (const [owner, rdata] of signatures) {
    image.putRRset(zone, wire(owner), { type: TYPES.RRSIG, ttlSeconds: 60, rdata })
  }
  for (const _ of image.updateChain(zone));
  image.publish()
  const answerer = new ZoneAnswerer(image.reader())
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
    reader.refresh()
    const found = reader.matchZone(query, 0)
    if (!direct.answer(query, response, found, reader.zoneLabel, true, true)) {
      answerer.answer(query, response)
    }
    return composeAt(query, response, SCRATCH, 1232)
  }
  return { name, serve }
}

function measure({ serve }, packets) {
  const before = process.cpuUsage()
  let octets = 0
  for (let i = 0; i < ANSWERS; i++) octets += serve(packets[i % packets.length])
  const { user } = process.cpuUsage(before)
  return { ns: (user * 1000) / ANSWERS, octets: octets / ANSWERS }
}

const root = resolve(import.meta.dirname ?? '.', '..')
const builds = [await load('Sextant', root)]
if (values.base !== undefined) builds.push(await load('base', resolve(values.base)))
const cases = Object.entries(SHAPES).flatMap(([title, of]) =>
  [false, true].map((dnssecOk) => ({
    title: dnssecOk ? `${title}, DO` : title,
    packets: Array.from({ length: NAMES }, (_, i) => composeQuery(...of(i), dnssecOk)),
    figures: builds.map(() => []),
  })),
)
for (let round = -2; round < rounds; round++) {
  for (const { packets, figures } of cases) {
    builds.forEach((build, i) => {
      const figure = measure(build, packets)
      if (round >= 0) figures[i].push(figure)
    })
  }
}
console.log(`| case | octets |${builds.map(({ name }) => ` ${name}, ns |`).join('')}`)
console.log(`|---|---:|${builds.map(() => '---:|').join('')}`)
for (const { title, figures } of cases) {
  const cells = figures.map((of) => ` ${median(of.map(({ ns }) => ns)).toFixed(0)} |`)
  console.log(`| ${title} | ${figures[0][0].octets.toFixed(0)} |${cells.join('')}`)
}
