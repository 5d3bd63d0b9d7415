import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { scanAddress } from '../../../../src/dns/text/address.ts'
import { findNodeAddress } from '../../../../src/egress/sinks/nft/node-address.ts'
import { run } from '../../../support/peer.ts'

const mayUnshare = spawnSync('unshare', ['-n', 'true']).status === 0
const SKIP = mayUnshare
  ? {}
  : { skip: 'no network namespace of our own: needs root and unshare(1)' }
const MODULE = fileURLToPath(
  import.meta.resolve('../../../../src/egress/sinks/nft/node-address.ts'),
)
const PRINT = `import(process.argv[1]).then(async ({ findNodeAddress }) => {
  console.log(await findNodeAddress(1), await findNodeAddress(2))
})`

t.test('the address of this host, if it has a route', async (t) => {
  const address = await findNodeAddress(1)
  if (address !== undefined) t.equal(scanAddress(address)?.family, 1)
})

t.test('a host without a route', SKIP, async (t) => {
  const args = ['-n', process.execPath, ...process.execArgv, '-e', PRINT, MODULE]
  const { code, stdout, stderr } = await run('unshare', args)
  t.equal(code, 0, stderr)
  t.equal(stdout, 'undefined undefined\n')
})
