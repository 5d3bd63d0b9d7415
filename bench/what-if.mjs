// Time of `sextant what-if` for an edit of many records.
//   npm run build && node bench/what-if.mjs [records] [edits] [yaml,directory,list,json]
//   npm run build && node bench/what-if.mjs samples [addresses]
// `samples` compares the shares with those of random addresses. Goal: within 0.5 %.
// The edit changes the weight of one endpoint. `yaml`: one file; `directory`: 100 files; `list` and
// `json`: as `kubectl get dnsrecord -o yaml` and `-o json` print. Goal: 100 000 records in 3 s or less.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { Random } from '../dist/base/random.js'
import { AddressSet } from '../dist/dns/text/address-set.js'
import { bundledLocator } from '../dist/geo/bundled-locator.js'
import { CONTINENTS, COUNTRIES } from '../dist/geo/countries.js'
import { ladderOf } from '../dist/geo/location.js'
import { SPECIAL_PREFIXES } from '../dist/geo/special-prefixes.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const records = Number(process.argv[2] ?? 100_000)
const edits = Number(process.argv[3] ?? 1000)
const forms = process.argv[4]?.split(',') ?? ['yaml', 'directory', 'list', 'json']
const FILES = 100
const SAMPLED_NAMES = 40

const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
if (process.env.KEEP === undefined)
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))

const stride = Math.max(1, Math.floor(records / Math.max(1, edits)))
const isEdited = (i) => i % stride === 0 && i / stride < edits
const endpoint = (host, id, geo, weight, address) => `  - dnsName: ${host}
    providerSpecific:
    - name: weight
      value: "${weight}"
    - name: geo-code
      value: ${geo}
    recordTTL: 60
    recordType: A
    setIdentifier: ${id}
    targets:
    - ${address}
`
const text = (i, side) => `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: app-${i}
  namespace: team-${i % 50}
spec:
  endpoints:
${endpoint(`app-${i}.k.example.com`, 'eu', 'GEO-EU', 120, `192.0.2.${i % 250}`)}${endpoint(
  `app-${i}.k.example.com`,
  'eu2',
  'GEO-EU',
  side === 'after' && isEdited(i) ? 20 : 60,
  `198.51.100.${i % 250}`,
)}  rootHost: app-${i}.k.example.com
`

const all = Array.from({ length: records }, (_, i) => i)
function write(form, side) {
  const path = join(directory, `${form}-${side}`)
  const texts = all.map((i) => text(i, side))
  if (form === 'list') {
    const items = texts.map((one) => `- ${one.trimEnd().replaceAll('\n', '\n  ')}\n`).join('')
    writeFileSync(
      path,
      `apiVersion: v1\nitems:\n${items}kind: List\nmetadata:\n  resourceVersion: ""\n`,
    )
  } else if (form === 'json') {
    const items = texts.map((one) => parse(one))
    writeFileSync(path, JSON.stringify({ apiVersion: 'v1', items, kind: 'List' }, undefined, 4))
  } else {
    mkdirSync(path)
    const files = form === 'yaml' ? 1 : FILES
    for (let f = 0; f < files; f++) {
      const part = texts.filter((_, i) => i % files === f)
      writeFileSync(join(path, `${f}.yaml`), part.map((one) => `---\n${one}`).join(''))
    }
  }
  return path
}

const corefile = (manifests) => `k.example.com {
    root ${directory}
    geoip
    kuadrant {${manifests}
    }
}
`

/** Runs the command. Returns its output, and the milliseconds and CPU milliseconds that it took. */
function run(...args) {
  const time = ['-c', 'TIMEFORMAT="%R %U %S"; time "$@"', 'bash']
  const command = [...process.execArgv, join(root, 'dist/main.js'), 'what-if', ...args]
  const options = { encoding: 'utf8', maxBuffer: 2 ** 30 }
  const { status, stdout, stderr } = spawnSync(
    'bash',
    [...time, process.execPath, ...command],
    options,
  )
  const [real, user, system] = stderr.trim().split('\n').at(-1).split(' ').map(Number)
  if (status !== 0) throw new Error(stderr.slice(0, 2000))
  return { stdout, seconds: real, cpuSeconds: user + system }
}

function measure(form) {
  const before = write(form, 'before')
  const after = write(form, 'after')
  const isDump = form === 'list' || form === 'json'
  const conf = join(directory, 'Corefile')
  writeFileSync(conf, corefile(isDump ? '' : `\n        manifests ${before}`))
  const flags = isDump ? ['--old-records', before, '--records', after] : ['--manifests', after]
  const { stdout, seconds, cpuSeconds } = run('-conf', conf, ...flags)
  const last = stdout.trimEnd().split('\n').at(-1)
  if (!last.startsWith(`${edits} RRsets change`)) throw new Error(last)
  console.log(`${form.padEnd(10)} ${seconds.toFixed(2)} s, CPU ${cpuSeconds.toFixed(2)} s`)
}

/** Compares shares of random records with random addresses of both families. */
async function compareWithSamples(samples) {
  const random = new Random(1)
  const codes = [...COUNTRIES, ...[...CONTINENTS].map((code) => `GEO-${code}`), '*']
  const names = Array.from({ length: SAMPLED_NAMES }, (_, i) => `n${i}.k.example.com`)
  const draw = () => {
    return names.map(
      () =>
        new Set(
          Array.from({ length: 1 + random.below(30) }, () => codes[random.below(codes.length)]),
        ),
    )
  }
  const sides = { old: draw(), new: draw() }
  // Equal codes have equal targets on both sides.
  const target = (code) => `192.0.2.${codes.indexOf(code) % 250}`
  for (const [side, sets] of Object.entries(sides)) {
    mkdirSync(join(directory, side))
    const endpoints = sets.flatMap((set, i) => {
      return [...set].map((code) => ({
        dnsName: names[i],
        recordType: 'A',
        setIdentifier: code,
        targets: [target(code)],
        providerSpecific: [{ name: 'geo-code', value: code }],
      }))
    })
    const spec = { rootHost: 'k.example.com', endpoints }
    const metadata = { name: 'all', namespace: 'bench' }
    const record = { apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata, spec }
    writeFileSync(join(directory, side, 'all.json'), JSON.stringify(record))
  }
  const conf = join(directory, 'Corefile')
  writeFileSync(conf, corefile('\n        manifests old'))
  const { stdout } = run('-conf', conf, '--manifests', join(directory, 'new'), '-o', 'json')
  const computed = new Map(JSON.parse(stdout).changes.map((change) => [change.name, change]))

  const locator = bundledLocator()
  await locator.open({ readsEntries: true })
  const answer = (set, ladder) => {
    const code = [...ladder, '*'].find((one) => set.has(one))
    return code === undefined ? [...set].map(target).sort().join() : target(code)
  }
  const blocks = Array.from({ length: 0x2000 }, (_, i) => 0x2000 + i).filter((block) => {
    const first = Uint8Array.from({ length: 16 }, (_, k) => [block >> 8, block & 255][k] ?? 0)
    const [{ prefixBits }] = locator.evidence(first, 2)
    return prefixBits > 16 || locator.locate(first, 2).country !== ''
  })
  const special = new AddressSet(SPECIAL_PREFIXES)
  const changed = new Map()
  let worst = 0
  for (const [family, field] of [
    [1, 'ipv4'],
    [2, 'ipv6'],
  ]) {
    const counts = new Array(names.length).fill(0)
    const bytes = new Uint8Array(family === 1 ? 4 : 16)
    for (let i = 0; i < samples; ) {
      for (let k = 0; k < bytes.length; k++) bytes[k] = random.below(256)
      if (family === 2) {
        // Most /16s of 2000::/3 have no location at all.
        const block = blocks[random.below(blocks.length)]
        bytes[0] = block >> 8
        bytes[1] = block & 255
      }
      if (special.has(bytes, 0, family) || bytes[0] >> 4 === 14) continue
      const ladder = ladderOf(locator.locate(bytes, family))
      if (family === 2 && ladder.length === 0) continue
      i++
      const key = ladder.join()
      const list =
        changed.get(key) ??
        names.flatMap((_, n) => {
          return answer(sides.old[n], ladder) === answer(sides.new[n], ladder) ? [] : [n]
        })
      changed.set(key, list)
      for (const n of list) counts[n]++
    }
    for (const [n, count] of counts.entries()) {
      const share = computed.get(`${names[n]}.`)?.[field] ?? 0
      worst = Math.max(worst, Math.abs(share - count / samples))
    }
  }
  locator.close()
  console.log(
    `${names.length} names, ${samples} addresses of each family: shares differ by ${(worst * 100).toFixed(3)} % at most`,
  )
}

if (process.argv[2] === 'samples') await compareWithSamples(Number(process.argv[3] ?? 1_000_000))
else {
  console.log(`${records} records, ${edits} edits, node ${process.version}`)
  for (const form of forms) measure(form)
}
