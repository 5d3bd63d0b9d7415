// A master file of a million records: scanned and checked, put into an image, and how much memory the
// image's process holds afterwards. Run after `npm run build`, best with `node --expose-gc`.
import { runWhole } from '../dist/base/slices.js'
import { fillImage } from '../dist/zone/zonefile/fill.js'
import { loadZoneText } from '../dist/zone/zonefile/load.js'

const RECORDS = Number(process.argv[2] ?? 1_000_000)
const ROUNDS = 3
const APEX = new Uint8Array(Buffer.from('\x07example\x03org\x00'))

function* addresses(count) {
  for (let i = 0; i < count; i++) {
    yield `h${i} 300 IN A 10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
  }
}

/** What a zone of many customers looks like: seven kinds of records. */
function* mixed(count) {
  for (let i = 0; i < count; i += 7) {
    yield `h${i} IN A 10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
    yield `     IN AAAA 2001:db8::${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}`
    yield `     IN MX 10 mail${i}`
    yield `     IN TXT "v=spf1 ip4:10.0.0.0/8 -all" ; comment`
    yield `www.h${i} IN CNAME h${i}`
    yield `_sip._tcp.h${i} 60 IN SRV 0 5 5060 h${i}.example.org.`
    yield `sub${i} IN NS ns1`
  }
}

function textOf(lines) {
  const head = ['$TTL 3600', '@ IN SOA ns1 host 1 2 3 4 5', '@ NS ns1', 'ns1 A 192.0.2.1']
  return Buffer.from([...head, ...lines].join('\n'))
}

/** CPU time, so that other programs on the machine count little. */
function cpuMs() {
  return process.cpuUsage().user / 1000
}

function median(values) {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)]
}

function measure(name, text) {
  const scans = []
  const fills = []
  let image
  let count = 0
  for (let round = 0; round < ROUNDS; round++) {
    image = undefined
    globalThis.gc?.()
    const start = cpuMs()
    const load = runWhole(loadZoneText({ file: 'bench', text, stamp: '' }, APEX))
    const scanned = cpuMs()
    if (load.kind !== 'loaded') throw new Error(load.errors?.[0]?.print() ?? load.kind)
    image = runWhole(fillImage(load.records, APEX))
    count = load.records.recordCount
    scans.push(scanned - start)
    fills.push(cpuMs() - scanned)
  }
  globalThis.gc?.()
  const seconds = (milliseconds) => (milliseconds / 1000).toFixed(2)
  const megabytes = (octets) => Math.round(octets / 1e6)
  console.log(
    `${name}: ${count} records, ${megabytes(text.length)} MB of text: ` +
      `scan and check ${seconds(median(scans))} s, image ${seconds(median(fills))} s; ` +
      `image ${megabytes(image.stats.usedOctets)} MB, resident ${megabytes(process.memoryUsage().rss)} MB`,
  )
}

measure('addresses', textOf(addresses(RECORDS)))
measure('mixed', textOf(mixed(RECORDS)))
