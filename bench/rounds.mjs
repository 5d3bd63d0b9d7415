/**
 * Times `operation` and prints the median of several rounds in ns of CPU time, so that other programs
 * on the machine count little; every result must be `want`.
 */
export function report(name, operation, want, operations = 1_000_000) {
  const rounds = []
  for (let round = 0; round < 9; round++) {
    let wrong = 0
    const start = process.cpuUsage()
    for (let i = 0; i < operations; i++) if (operation() !== want) wrong++
    rounds.push((process.cpuUsage(start).user * 1000) / operations)
    if (wrong > 0) throw new Error(`${name}: ${wrong} wrong results`)
  }
  rounds.sort((a, b) => a - b)
  console.log(`${rounds[4].toFixed(0).padStart(6)} ns/op  ${name}`)
}
