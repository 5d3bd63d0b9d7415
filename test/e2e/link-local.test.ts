import { join } from 'node:path'
import t from 'tap'
import { HostNetwork } from '../support/host-network.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { layFiles, putFile, root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

const SERVE = [process.execPath, join(root, 'dist/main.js'), 'serve']
const PORT = 1053
/** Refreshed by NOTIFY alone: the timers of the SOA are days. */
const zone = (serial: number) => `@ 60 SOA ns host ${serial} 86400 86400 864000 60\n@ 60 NS ns\n`

t.test(
  'a zone and its NOTIFYs go from one link-local address to another',
  { ...needsRoot(), ...needs('dig') },
  async (t) => {
    const directory = temporaryDirectory(t)
    const network = await HostNetwork.create(t)
    const setUp = async (name: string, address: string, corefile: string) => {
      const cwd = join(directory, name)
      layFiles(cwd, { Corefile: `example.org:${PORT} {\n${corefile}}\n` })
      const host = await network.addHost(name, [`${address}/64`])
      return { cwd, host, start: () => host.start(SERVE, { cwd }) }
    }
    const primary = await setUp(
      'primary',
      'fe80::1',
      `file db {\n reload 1s\n }\n transfer {\n to [fe80::2%eth0]:${PORT}\n source fe80::1%eth0\n }\n`,
    )
    const secondary = await setUp(
      'secondary',
      'fe80::2',
      `secondary {\n transfer from [fe80::1%eth0]:${PORT}\n source fe80::2%eth0\n }\n`,
    )
    layFiles(primary.cwd, { db: zone(1) })
    const servers = [primary.start(), secondary.start()]
    const serves = (serial: number) =>
      until(
        async () => {
          const query = ['@::1', '-p', String(PORT), 'example.org', 'SOA', '+short', '+time=1']
          return (await secondary.host.run('dig', ...query)).includes(` ${serial} 86400`)
        },
        `serial ${serial}`,
        60_000,
      ).catch((error: Error) => {
        throw new Error(`${error.message}: ${servers.map((one) => one.output()).join('\n')}`)
      })
    await serves(1)
    putFile(primary.cwd, 'db', zone(2))
    await serves(2)
    t.notMatch(servers[0]?.output(), /NOTIFY of example\.org\. 2 .* failed/)
  },
)
