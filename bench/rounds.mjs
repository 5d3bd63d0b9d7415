import { median } from './median.mjs'

/** One of a few rounds, for ratios between two builds. */
const isShort = process.env.SEXTANT_BENCH_SHORT === '1'

/**
 * Times `operation` and prints the median of several rounds in ns of CPU time, so that other programs
 * on the machine count little; every result must be `want`.
 */
export function report(name, operation, want, operations = isShort ? 200_000 : 1_000_000) {
  const rounds = []
  for (let round = 0; round < (isShort ? 5 : 9); round++) {
    let wrong = 0
    const start = process.cpuUsage()
    for (let i = 0; i < operations; i++) if (operation() !== want) wrong++
    rounds.push((process.cpuUsage(start).user * 1000) / operations)
    if (wrong > 0) throw new Error(`${name}: ${wrong} wrong results`)
  }
  console.log(`${median(rounds).toFixed(0).padStart(6)} ns/op  ${name}`)
}
