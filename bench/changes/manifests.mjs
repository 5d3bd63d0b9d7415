// The records that bench/changes.mjs serves, and how it edits them.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export const ZONE = 'k.example.com'
/** As many endpoints as a DNSRecord may have. */
const ENDPOINTS_MAX = 1000
const BULK_PER_FILE = 10
/** Endpoints of each file that is edited with all it holds. */
export const BATCH = 50
export const BATCHES = 20
/** Files of one endpoint. */
export const SINGLES = 1000

export const bulkName = (i) => `n${i}.${ZONE}`
const address = (i, version = 0) => `10.${((i >> 16) + version) & 255}.${(i >> 8) & 255}.${i & 255}`

function record(name, endpoints) {
  const items = endpoints.map(
    ([host, target]) =>
      `  - dnsName: ${host}\n    recordType: A\n    recordTTL: 60\n    targets:\n    - ${target}\n`,
  )
  return `---\napiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata:\n  name: ${name}\nspec:\n  rootHost: ${ZONE}\n  endpoints:\n${items.join('')}`
}

/** A file that is complete whenever it is there, as careful writers make it. */
export function replace(path, text) {
  const next = join(dirname(path), '.next')
  writeFileSync(next, text)
  renameSync(next, path)
}

/** Writes `names` names that stay as they are, and the files that will be edited. */
export function writeManifests(directory, names) {
  mkdirSync(directory)
  let text = ''
  for (let n = 0; n * ENDPOINTS_MAX < names; n++) {
    const from = n * ENDPOINTS_MAX
    const count = Math.min(ENDPOINTS_MAX, names - from)
    const endpoints = Array.from({ length: count }, (_, i) => [
      bulkName(from + i),
      address(from + i),
    ])
    text += record(`bulk-${n}`, endpoints)
    if ((n + 1) % BULK_PER_FILE !== 0 && from + count < names) continue
    writeFileSync(join(directory, `bulk-${String(n).padStart(4, '0')}.yaml`), text)
    text = ''
  }
  const edits = editsOf(directory)
  edits.one(0)
  edits.large(0)
  for (let i = 0; i < BATCHES; i++) edits.batch(i, 0)
  for (let i = 0; i < SINGLES; i++) edits.single(i, 0)
}

/** Each writes one file; what it holds has another address for each `version`, and returns the new one. */
export function editsOf(directory) {
  return {
    one(version) {
      const target = `192.0.2.${version % 256}`
      replace(join(directory, 'one.yaml'), record('one', [[`one.${ZONE}`, target]]))
      return target
    },
    /** One changed endpoint among a thousand. */
    large(version) {
      const target = `192.0.2.${version % 256}`
      const others = Array.from({ length: ENDPOINTS_MAX - 1 }, (_, i) => [
        `large-${i}.${ZONE}`,
        address(i),
      ])
      replace(
        join(directory, 'large.yaml'),
        record('large', [...others, [`large.${ZONE}`, target]]),
      )
      return target
    },
    batch(i, version) {
      const endpoints = Array.from({ length: BATCH }, (_, k) => [
        `batch-${i}-${k}.${ZONE}`,
        address(i * BATCH + k, version),
      ])
      replace(join(directory, `batch-${i}.yaml`), record(`batch-${i}`, endpoints))
    },
    single(i, version) {
      const endpoints = [[`single-${i}.${ZONE}`, address(i, version)]]
      replace(join(directory, `single-${i}.yaml`), record(`single-${i}`, endpoints))
    },
  }
}
