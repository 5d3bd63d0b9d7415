// GEO and weight choice: <= 200 ns each. Also: how long the class trie of the bundled database takes to
// build, and how much smaller than the database it is.
import { Random } from '../dist/base/random.js'
import { Query } from '../dist/dns/message/query.js'
import { Response } from '../dist/dns/message/response.js'
import { FlatClassTrie } from '../dist/geo/class-trie.js'
import { buildClasses } from '../dist/geo/classes/build-classes.js'
import { scanGeoCode } from '../dist/geo/code.js'
import { continentOf } from '../dist/geo/countries.js'
import { Database } from '../dist/geo/mmdb/database.js'
import { bundledDatabasePath, loadFileSync } from '../dist/geo/mmdb/load.js'
import { STICKY_DEFAULT } from '../dist/steering/rules.js'
import { stickySeed } from '../dist/steering/sticky.js'
import { SteeringTable } from '../dist/steering/table.js'
import { Choice } from '../dist/zone/image/types.js'

const { image } = loadFileSync(process.argv[2] ?? bundledDatabasePath())
const database = new Database(image)

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1]
}

/** Leaves of the database's own tree: prefixes of entries, IPv4 and IPv6. */
function countPrefixes({ tree }) {
  let count = 0
  for (let node = 0; node < tree.nodeCount; node++) {
    for (let bit = 0; bit < 2; bit++) if (tree.child(node, bit) > tree.nodeCount) count++
  }
  return count
}

/** Prefixes of the trie that are some class other than unknown. */
function countClassified({ words, rootIPv4, rootIPv6 }) {
  const memo = new Map()
  const count = (word) => {
    if (word >= 0x80000000) return word === 0x80000000 ? 0 : 1
    if (!memo.has(word)) memo.set(word, count(words[word * 2]) + count(words[word * 2 + 1]))
    return memo.get(word)
  }
  return [count(rootIPv4), count(rootIPv6)]
}

const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
const countries = letters
  .flatMap((first) => letters.map((second) => first + second))
  .filter((code) => continentOf(code) !== '')
console.log(
  `${database.type}: ${image.bytes.length >> 10} KiB, ${countPrefixes(database)} prefixes`,
)
for (const texts of [['GEO-EU', 'GEO-NA'], ['GEO-EU', 'GEO-NA', 'IE', 'US', 'JP'], countries]) {
  const codes = texts.map(scanGeoCode)
  const times = []
  let data
  for (let round = 0; round < 5; round++) {
    const start = process.cpuUsage()
    data = buildClasses({ databases: [database], nets: [], codes })
    times.push(process.cpuUsage(start).user / 1000)
  }
  const [ipv4, ipv6] = countClassified(data)
  console.log(
    `${texts.length} codes: built in ${median(times).toFixed(0)} ms CPU, ${data.words.byteLength >> 10} KiB, ` +
      `${data.codesOf.length} classes, ${ipv4} IPv4 prefixes, ${ipv6} IPv6 ones (IPv4 in ::/96 and ::ffff:0:0/96 included)`,
  )
}

const locator = {
  classify: async (codes) =>
    new FlatClassTrie(buildClasses({ databases: [database], nets: [], codes })),
  onChange: () => () => {},
}
const table = new SteeringTable({ locator, random: new Random(1), onError: console.error })
const endpoint = (code, isDefault, weight, index) => ({
  code: code === undefined ? undefined : scanGeoCode(code),
  isDefault,
  weight,
  ttlSeconds: 60,
  rdataIndexes: [index],
})
const EIGHT = [100, 80, 60, 40, 30, 20, 10, 5]
const sets = {
  'weight, 3 candidates': [120, 60, 20].map((w, i) => endpoint(undefined, false, w, i)),
  'weight, 8 candidates': EIGHT.map((w, i) => endpoint(undefined, false, w, i)),
  'GEO, 2 continents and a default': [
    endpoint('GEO-EU', true, undefined, 0),
    endpoint('GEO-NA', false, undefined, 1),
  ],
  'GEO and weight, 3 candidates in each of 2 continents': [120, 60, 20].flatMap((w, i) => [
    endpoint('GEO-EU', true, w, i),
    endpoint('GEO-NA', false, w, i + 3),
  ]),
  'GEO and weight, every country': countries.flatMap((code, i) => [
    endpoint(code, i < 2, 120, i),
    endpoint(code, false, 60, i),
  ]),
}
const composed = Object.entries(sets).map(([name, set]) => [name, table.compose(set, 1)])
for (const [name, set] of Object.entries(sets).slice(0, 4)) {
  const seeded = set.map((one) => ({
    ...one,
    seed: stickySeed(new Uint8Array(1), `${one.rdataIndexes}`),
  }))
  composed.push([`${name}, sticky`, table.compose(seeded, 1, { sticky: STICKY_DEFAULT })])
  const rules = { sticky: STICKY_DEFAULT, answers: 3 }
  if (set.length > 3) composed.push([`${name}, sticky, answers 3`, table.compose(seeded, 1, rules)])
  if (set.length > 3) composed.push([`${name}, answers 3`, table.compose(set, 1, { answers: 3 })])
  const counters = { assign: ({ members }) => members[0].rdataIndexes[0] }
  const counted = table.compose(set, 1, {}, counters)
  composed.push([`${name}, counted`, counted])
}
await table.built()
const counts = new Float64Array(new SharedArrayBuffer(8 * 1000))
const steerer = table.steerer(new Random(1), counts)
const query = new Query()
const response = new Response()
const choice = new Choice()
query.clientIsEcs = true
query.clientBits = 24
const clients = new Random(2)
const addresses = new Uint8Array(4 * 65536)
for (let i = 0; i < addresses.length; i++) addresses[i] = clients.below(256)

for (const [name, words] of composed) {
  const rounds = []
  for (let round = 0; round < 9; round++) {
    const operations = 1_000_000
    let served = 0
    const start = process.cpuUsage()
    for (let i = 0; i < operations; i++) {
      const at = (i & 65535) * 4
      query.clientAddress[0] = addresses[at]
      query.clientAddress[1] = addresses[at + 1]
      query.clientAddress[2] = addresses[at + 2]
      response.scopeBits = 0
      steerer.choose(query, response, words, 0, choice)
      served += choice.count
    }
    rounds.push((process.cpuUsage(start).user * 1000) / operations)
    if (served < operations) throw new Error('a choice served nothing')
  }
  console.log(`${median(rounds).toFixed(0).padStart(6)} ns/op  ${name}, random clients`)
}
