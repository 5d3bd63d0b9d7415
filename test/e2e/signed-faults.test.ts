import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { UdpClient } from '../support/client.ts'
import { needsRoot } from '../support/peer.ts'
import { faultsOfMessage } from '../support/response-validator.ts'
import { freePort, type RunningServer, runSextant, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { wire } from '../support/zone-names.ts'
import { dnskeysOf } from './signed-clients.ts'

// Long: it starts servers, and runs commands.

/* A server that signs refuses faults of keys and policies with a place and a fix, and its zones stay signed. */

const ZONE = 's.example'
const FILES = { 'db.s': '@ 300 IN SOA a b 1 2 3 4 5\n@ 300 IN NS a\na 300 IN A 192.0.2.1\n' }

const corefile = (dnssec: string, port: number | string = '{PORT}'): string => `${ZONE}:${port} {
  bind 127.0.0.1
  errors
  file db.s
  dnssec {
    ${dnssec}
  }
}
`

/** Names of the key pairs in a directory, without extension. */
function pairsIn(directory: string): string[] {
  const files = readdirSync(directory).filter((name) => name.endsWith('.key'))
  return files.map((name) => name.slice(0, -'.key'.length))
}

/** Makes a key with `sextant keys generate`; returns its path without extension. */
async function makeKey(directory: string, zone: string, folder: string): Promise<string> {
  mkdirSync(join(directory, folder), { recursive: true, mode: 0o700 })
  const before = pairsIn(join(directory, folder))
  const { code, stdout, stderr } = await runSextant(directory, [
    ...['keys', 'generate', zone, '-keys', folder],
  ])
  if (code !== 0) throw new Error(`${stdout}${stderr}`)
  const made = pairsIn(join(directory, folder)).find((name) => !before.includes(name))
  return join(folder, made!)
}

/** The zone has these keys, and its answers validate. */
async function checkServed(
  t: Test,
  { port }: RunningServer,
  dnskeys: readonly Uint8Array[],
  when: string,
): Promise<void> {
  t.strictSame(await dnskeysOf(port, ZONE), dnskeys, `${when}: the same keys`)
  const client = await UdpClient.connect(port)
  for (const name of [`a.${ZONE}`, `none.${ZONE}`, ZONE]) {
    const reply = parseMessage(await client.ask({ name, type: 'A', dnssecOk: true }))!
    const zone = { apex: wire(`${ZONE}.`), dnskeys, nowSeconds: Date.now() / 1000 }
    t.strictSame(faultsOfMessage(reply, zone), [], `${when}: ${name}`)
  }
  client.close()
}

interface Fault {
  readonly what: string
  /** Makes the fault; returns the lines of `dnssec`. */
  readonly make: (directory: string) => Promise<string> | string
  readonly undo?: (directory: string) => void
  /** What a reload prints, and `check`, unless only the running server can know the fault. */
  readonly wants: RegExp
  readonly isUnchecked?: true
}

const slowly = (lines: string): string => `keys keys\n    policy p {\n      ${lines}\n    }`
const privateKey = (directory: string): string =>
  join(directory, 'keys', `${pairsIn(join(directory, 'keys'))[0]}.private`)

const FAULTS: readonly Fault[] = [
  {
    what: 'a private key that others can read',
    make: (directory) => {
      chmodSync(privateKey(directory), 0o644)
      return 'keys keys'
    },
    undo: (directory) => chmodSync(privateKey(directory), 0o600),
    wants:
      /Corefile:6.*other users can read the private key .*\.private, its mode is 0644; run chmod 600 /,
  },
  {
    what: 'a damaged private key',
    make: (directory) => {
      copyFileSync(privateKey(directory), join(directory, 'saved'))
      chmodSync(join(directory, 'saved'), 0o600)
      writeFileSync(privateKey(directory), 'Private-key-format: v1.3\nAlgorithm: 13\n')
      return 'keys keys'
    },
    undo: (directory) => renameSync(join(directory, 'saved'), privateKey(directory)),
    wants: /\.private:1: the line PrivateKey is missing/,
  },
  {
    what: 'a lost directory',
    make: (directory) => {
      renameSync(join(directory, 'keys'), join(directory, 'away'))
      return 'keys keys'
    },
    undo: (directory) => {
      rmSync(join(directory, 'keys'), { recursive: true, force: true })
      renameSync(join(directory, 'away'), join(directory, 'keys'))
    },
    wants: /Corefile:6.*has lost the state of the rolls; restore a backup/,
    isUnchecked: true,
  },
  {
    what: 'a key of another zone',
    make: async (directory) => `key file ${await makeKey(directory, 'other.example', 'other')}`,
    wants: /Corefile:6.*key other\.example\. .* cannot sign s\.example\.: it is of another zone/,
  },
  {
    what: 'two keys with one tag',
    make: async (directory) => {
      const path = await makeKey(directory, ZONE, 'twice')
      for (const end of ['key', 'private'])
        copyFileSync(join(directory, `${path}.${end}`), join(directory, `copy.${end}`))
      return `key file ${path}\n    key file copy`
    },
    wants: /Corefile:[67].*two keys have this tag/,
  },
  {
    what: 'an unknown algorithm',
    make: () => 'keys keys\n    algorithm ECC-GOST',
    wants: /Corefile:7.*ECC-GOST/,
  },
  {
    what: 'a policy that cannot finish a roll',
    make: () => slowly('csk-lifetime 1h'),
    wants: /Corefile:[678].*csk-lifetime/,
  },
  {
    what: 'signatures that are made again at once',
    make: () => slowly('signatures-validity 4d'),
    wants: /Corefile:[678].*policy p.*signatures/,
  },
  {
    what: 'a token',
    make: () => 'keys pkcs11:token=a',
    wants: /Corefile:6.*PKCS #11/,
  },
]

t.test('faults at a reload', async (t) => {
  const server = await startServer(t, { corefile: corefile('keys keys'), files: FILES })
  const { directory, port } = server
  const dnskeys = await dnskeysOf(port, ZONE)
  let failures = 0
  for (const { what, make, undo, wants, isUnchecked } of FAULTS) {
    writeFileSync(join(directory, 'Corefile'), corefile(await make(directory), port))
    const { code, stdout, stderr } = await runSextant(directory, ['check'])
    if (!isUnchecked) t.match([code, stdout + stderr], [1, wants], `check: ${what}`)
    server.process.kill('SIGUSR1')
    failures++
    const failed = () => server.output().match(/Restart failed: .*/g) ?? []
    await until(() => failed().length === failures, what)
    t.match(failed().at(-1), wants, what)
    await checkServed(t, server, dnskeys, what)
    undo?.(directory)
  }
  writeFileSync(join(directory, 'Corefile'), corefile('keys keys', port))
  server.process.kill('SIGUSR1')
  await server.prints(/Reloading complete/)
  await checkServed(t, server, dnskeys, 'after the faults')
})

t.test('a parent that answers nothing', async (t) => {
  const dnssec = 'keys keys\n    parent 127.0.0.1:1'
  const server = await startServer(t, { corefile: corefile(dnssec), files: FILES })
  await server.prints(/the DS in the parent is not known: 127\.0\.0\.1:1: connection refused/)
  await checkServed(t, server, await dnskeysOf(server.port, ZONE), 'without a parent')
})

t.test('a disk that is full while a key is written', needsRoot(), async (t) => {
  const [directory, port] = [temporaryDirectory(t), await freePort()]
  const keys = join(directory, 'keys')
  mkdirSync(keys)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=700', 'tmpfs', keys])
  t.teardown(() => execFileSync('umount', ['-l', keys]))
  const server = await startServer(t, {
    corefile: corefile('keys keys'),
    files: FILES,
    beside: { directory, port },
  })
  const dnskeys = await dnskeysOf(port, ZONE)
  const filler = join(directory, 'keys', 'filler')
  t.throws(() => writeFileSync(filler, Buffer.alloc(512 * 1024)), { code: 'ENOSPC' })
  const { code, stderr } = await runSextant(directory, ['keys', 'roll', ZONE, '--csk'])
  t.match([code, stderr], [1, /keys.*no space left on device/i], 'a command')
  const reload = async (dnssec: string, prints: RegExp): Promise<void> => {
    writeFileSync(join(directory, 'Corefile'), corefile(dnssec, port))
    server.process.kill('SIGUSR1')
    await server.prints(prints)
  }
  await reload('keys keys', /Reloading complete/)
  const changed = 'keys keys\n    algorithm ED25519'
  await reload(changed, /Restart failed: Corefile:6: .*can't change the keys.*no space left/)
  await checkServed(t, server, dnskeys, 'with a full disk')
  rmSync(filler)
  await reload(changed, /Reloading complete(.|\n)*Reloading complete/)
  await until(() => pairsIn(keys).length === 2, 'a key of the new algorithm')
})

t.test('a reload that leaves a zone unsigned warns of it', async (t) => {
  const server = await startServer(t, { corefile: corefile('keys keys'), files: FILES })
  const { directory, port } = server
  const warning =
    /zone s\.example\. is not signed any more: while its parent has a DS, .*restore `dnssec`/
  const reload = async (text: string, isWarned: boolean): Promise<void> => {
    const { length } = server.output()
    writeFileSync(join(directory, 'Corefile'), text)
    server.process.kill('SIGUSR1')
    const since = () => server.output().slice(length)
    await until(() => since().includes('Reloading complete'), 'the reload')
    if (isWarned) await until(() => warning.test(since()), 'the warning')
    else t.notMatch(since(), warning)
  }
  await reload(`${corefile('keys keys', port)}# changed\n`, false)
  await reload(corefile('keys keys', port).replace(/ {2}dnssec {[^}]*}\n/, ''), true)
  await reload(corefile('keys keys', port), false)
  const before = server.output().length
  server.process.kill('SIGTERM')
  await server.exited()
  t.notMatch(server.output().slice(before), warning, 'nothing at the end of the server')
})
