// A network namespace of its own for a benchmark: what it does to nftables concerns nobody else.
import { spawnSync } from 'node:child_process'

const MARK = 'SEXTANT_BENCH_NETWORK'

/** Starts this program again in a namespace, unless it is in one. Needs root. */
export function enterOwnNetwork() {
  if (process.env[MARK] !== undefined) return
  const command = 'ip link set lo up && exec "$@"'
  const args = ['-n', 'sh', '-c', command, 'sh', process.execPath, ...process.execArgv]
  const env = { ...process.env, [MARK]: '1' }
  const { status } = spawnSync('unshare', [...args, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env,
  })
  process.exit(status ?? 1)
}
