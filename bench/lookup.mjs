// Lookups in a zone image: ns per answer at 1 k and 1 M names, memory per name, time of one edit, and
// why views have a fixed length. Run after `npm run build`: node bench/lookup.mjs
import { Query } from '../dist/dns/message/query.js'
import { Response } from '../dist/dns/message/response.js'
import { hashLabel, NAME_HASH_SEED } from '../dist/dns/name/hash.js'
import { ZoneImage } from '../dist/zone/image/writer.js'
import { ZoneAnswerer } from '../dist/zone/lookup/answer.js'

const A = 1
const APEX = wire('k.example.com.')

function wire(text) {
  const labels = text.split('.').filter((label) => label !== '')
  const name = new Uint8Array(text.length + 1)
  let at = 0
  for (const label of labels) {
    name[at++] = label.length
    for (let i = 0; i < label.length; i++) name[at++] = label.charCodeAt(i)
  }
  return name
}

function owner(i) {
  return wire(`app-${(i * 2654435761) % 4294967296}.k.example.com.`)
}

function ask(query, name) {
  query.qname.set(name)
  query.qnameOctets = name.length
  query.qtype = A
  let labels = 0
  for (let at = 0; name[at] !== 0; at += name[at] + 1) query.labelOffset[labels++] = at
  query.labelCount = labels
  query.labelOffset[labels] = name.length - 1
  let hash = NAME_HASH_SEED
  query.suffixHash[labels] = hash
  for (let i = labels - 1; i >= 0; i--) {
    hash = hashLabel(hash, name, query.labelOffset[i])
    query.suffixHash[i] = hash
  }
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1]
}

function microseconds() {
  return Number(process.hrtime.bigint()) / 1000
}

// Every process-wide number is of this image alone.
function build(names) {
  const before = process.memoryUsage().rss
  const started = microseconds()
  const image = new ZoneImage()
  const zone = image.addZone(APEX)
  const soa = new Uint8Array([0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 60])
  image.putRRset(zone, APEX, { type: 6, ttlSeconds: 60, rdata: [soa] })
  for (let i = 0; i < names; i++) {
    const rdata = [new Uint8Array([192, 0, i & 255, (i >> 8) & 255])]
    image.putRRset(zone, owner(i), { type: A, ttlSeconds: 60, rdata })
  }
  image.publish()
  const seconds = (microseconds() - started) / 1e6
  const { usedOctets, garbageOctets, arenaOctets } = image.stats
  const rss = process.memoryUsage().rss - before
  console.log(
    `${names} names: built in ${seconds.toFixed(2)} s, arena ${mb(arenaOctets)} MB, used ${mb(usedOctets)} MB` +
      ` (garbage ${mb(garbageOctets)} MB), ${(usedOctets / names).toFixed(0)} octets/name, rss +${mb(rss)} MB`,
  )
  return { image, zone, names }
}

function mb(octets) {
  return (octets / 1048576).toFixed(1)
}

// Copying a prepared question into the query stands in for parsing, and is taken off again: only the
// answer is timed. Few distinct Query objects would flatter the cache, many would blame it on us.
function lookups(title, { image, names }, nameOf) {
  const query = new Query()
  const size = 64
  const count = Math.min(names, 100000)
  const octets = new Uint8Array(count * size)
  const hashes = new Int32Array(count * 8)
  for (let i = 0; i < count; i++) {
    const name = nameOf(Math.floor(Math.random() * names))
    octets[i * size] = name.length
    octets.set(name, i * size + 1)
    ask(query, name)
    hashes.set(query.suffixHash.subarray(0, 5), i * 8)
  }
  const load = (i) => {
    const length = octets[i * size]
    query.qnameOctets = length
    for (let k = 0; k < length; k++) query.qname[k] = octets[i * size + 1 + k]
    for (let k = 0; k < 5; k++) query.suffixHash[k] = hashes[i * 8 + k]
    query.labelOffset[1] = query.qname[0] + 1
    for (let k = 2; k < 5; k++) {
      query.labelOffset[k] = query.labelOffset[k - 1] + query.qname[query.labelOffset[k - 1]] + 1
    }
  }
  const response = new Response()
  const answerer = new ZoneAnswerer(image.reader())
  const none = () => {}
  const answer = () => {
    response.count = 0
    response.rcode = 0
    response.synthesizedOctets = 0
    answerer.answer(query, response)
  }
  const turns = Math.ceil(100000 / count)
  const rounds = []
  for (let round = 0; round < 15; round++) {
    const [base, whole] = [none, answer].map((work) => {
      const started = microseconds()
      for (let turn = 0; turn < turns; turn++) {
        for (let i = 0; i < count; i++) {
          load(i)
          work()
        }
      }
      return microseconds() - started
    })
    rounds.push(((whole - base) * 1000) / (count * turns))
  }
  const best = Math.min(...rounds).toFixed(0)
  if (response.count !== 1) throw new Error('no answer')
  console.log(`${title} at ${names} names: ${median(rounds).toFixed(0)} ns/lookup (best ${best})`)
}

function edits({ image, zone, names }) {
  const times = []
  for (let i = 0; i < 20000; i++) {
    const name = owner(Math.floor(Math.random() * names))
    const rdata = [new Uint8Array([198, 51, i & 255, (i >> 8) & 255])]
    const started = microseconds()
    image.putRRset(zone, name, { type: A, ttlSeconds: 60, rdata })
    image.publish()
    times.push(microseconds() - started)
  }
  const worst = Math.max(...times).toFixed(0)
  console.log(
    `edit and publish at ${names} names: median ${median(times).toFixed(2)} us, worst ${worst} us`,
  )
  const started = microseconds()
  image.compact()
  const { usedOctets } = image.stats
  const ms = ((microseconds() - started) / 1000).toFixed(0)
  console.log(
    `compact ${names} names: ${ms} ms, then ${(usedOctets / names).toFixed(0)} octets/name`,
  )
}

// Two copies of one loop, so that each sees one kind of view.
function views() {
  const words = 4096
  const buffer = new SharedArrayBuffer(words * 4, { maxByteLength: 2 ** 30 })
  const kinds = { fixed: new Uint32Array(buffer, 0, words), tracking: new Uint32Array(buffer) }
  for (const [kind, view] of Object.entries(kinds)) {
    const body =
      'let s = 0; for (let i = 0; i < n; i++) s = (s + v[(i * 7919) & 4095]) | 0; return s'
    const loop = new Function('v', 'n', body)
    const rounds = []
    for (let round = 0; round < 9; round++) {
      const started = microseconds()
      loop(view, 1e7)
      rounds.push((microseconds() - started) / 1e4)
    }
    console.log(`views, ${kind} length: ${median(rounds).toFixed(2)} ns/read`)
  }
}

views()
for (const names of [1000, 1000000]) {
  const built = build(names)
  lookups('hit', built, owner)
  lookups('no such name', built, (i) => wire(`no-${i}.k.example.com.`))
  edits(built)
  lookups('hit, compacted,', built, owner)
}
