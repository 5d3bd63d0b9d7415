// Claims: what many sets of locations cost: CPU time to build the GEO classes and to fill the policy table, and memory.
// By hand: npm run build && node bench/nearest.mjs DATABASE [PLACES] [SIZE]
// DATABASE: an MMDB file with coordinates, such as GeoLite2-City. The endpoints are at PLACES random places (256). Each
// set has SIZE of them (5). Each number of sets has a process of its own.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Random } from '../dist/base/random.js'
import { FlatClassTrie } from '../dist/geo/class-trie.js'
import { buildClasses } from '../dist/geo/classes/build-classes.js'
import { Database } from '../dist/geo/mmdb/database.js'
import { loadFileSync } from '../dist/geo/mmdb/load.js'
import { pointOf } from '../dist/geo/point.js'
import { Policies } from '../dist/steering/policies.js'
import { tierKey } from '../dist/steering/tier-key.js'

const [file, places = '256', size = '5', sets] = process.argv.slice(2)

function randomSets() {
  const random = new Random(7)
  const points = Array.from({ length: Number(places) }, () =>
    pointOf({ latitude: random.below(130) - 55, longitude: random.below(36000) / 100 - 180 }),
  )
  return Array.from({ length: Number(sets) }, () => {
    const set = new Map()
    while (set.size < Number(size)) {
      const point = points[random.below(points.length)]
      set.set(point.text, point)
    }
    return [...set.values()].sort((a, b) => (a.text < b.text ? -1 : 1))
  })
}

/** Returns the result of `work`, and its CPU time in seconds as text. */
function timed(work) {
  const start = process.cpuUsage()
  const result = work()
  const { user, system } = process.cpuUsage(start)
  return [result, ((user + system) / 1e6).toFixed(2)]
}

if (sets === undefined) {
  for (const count of ['0', '1', '10', '100']) {
    const args = [fileURLToPath(import.meta.url), file, places, size, count]
    execFileSync(process.execPath, args, { stdio: 'inherit' })
  }
} else {
  const databases = [new Database(loadFileSync(file).image)]
  const pointSets = randomSets()
  const [data, build] = timed(() => buildClasses({ databases, nets: [], codes: [], pointSets }))
  const policies = new Policies()
  for (const set of pointSets) policies.intern(set.map((point) => tierKey(undefined, point)))
  const [, fill] = timed(() => policies.adopt(new FlatClassTrie(data)))
  const most = (process.resourceUsage().maxRSS / 1024).toFixed(0)
  console.log(
    `${sets.padStart(3)} sets of ${size} of ${places} places: classes ${build} s of CPU, table ${fill} s, ` +
      `${data.codesOf.length} classes, at most ${most} MiB resident`,
  )
}
