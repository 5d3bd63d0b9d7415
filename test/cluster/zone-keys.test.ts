import t, { type Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { matchesDs } from '../../src/dns/dnssec/ds.ts'
import { coveredType, verifySet } from '../../src/dns/dnssec/rrsig.ts'
import { RRType, scanType } from '../../src/dns/iana/types.ts'
import { openApi } from '../../src/kube/open-api.ts'
import { KeySecret } from '../../src/signing/keys/key-secret.ts'
import { isAsked } from '../../src/signing/rolls/observe.ts'
import { type RollRequest, requestRoll, scanRollState } from '../../src/signing/rolls/roll-state.ts'
import { applyAll } from '../support/apply.ts'
import { UdpClient } from '../support/client.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { deploy, writeKubeconfig } from '../support/deployed.ts'
import { getText } from '../support/get-text.ts'
import { composeManifests } from '../support/kustomize.ts'
import { may, rightsInForce, SYSTEM } from '../support/rights.ts'
import { freePort, type RunningServer, runSextant, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { readMessage } from '../support/wire.ts'
import { wire } from '../support/zone-names.ts'

/*
 * Servers with one Secret of keys, with the rights of `deploy/zone-keys`: they sign with the same keys, one of them makes
 * them, and a roll goes on when that one is killed. Each answer of each server validates with the keys of each.
 */

const NAME = 'sextant-zone-keys'
const ZONE = wire('k.example.')
const DB = `$TTL 1
@ SOA ns1 hostmaster 1 3600 600 86400 1
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.2
`
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases/${NAME}`
/** Ample, for a machine on which other tests run too. */
const STEP_MS_MAX = 240_000

t.setTimeout(CLUSTER_TEST_MS)

interface Answer {
  readonly rdata: readonly Uint8Array[]
  readonly rrsigs: readonly Uint8Array[]
}

/** A server, and its answers. */
class Signer {
  readonly server: RunningServer
  readonly #client: UdpClient
  readonly #ready: number

  private constructor(server: RunningServer, client: UdpClient, ready: number) {
    this.server = server
    this.#client = client
    this.#ready = ready
  }

  /** The followers see a change within 10 seconds: the delay of the propagation is longer. */
  static async start(t: Test, kubeconfig: string): Promise<Signer> {
    const ready = await freePort()
    const corefile = `k.example:{PORT} {
    bind 127.0.0.1
    ready 127.0.0.1:${ready}
    file db
    dnssec {
        keys secret ${SYSTEM}/${NAME}
        kubeconfig ${kubeconfig}
        policy fast {
            dnskey-ttl 1
            zone-propagation-delay 12
            parent-propagation-delay 0
            parent-ds-ttl 1
            publish-safety 0
            retire-safety 0
        }
    }
}
`
    const server = await startServer(t, { corefile, files: { db: DB } })
    const client = await UdpClient.connect(server.port)
    t.teardown(() => client.close())
    return new Signer(server, client, ready)
  }

  /** What the ready page says. */
  async ready(): Promise<string> {
    return (await getText(`http://127.0.0.1:${this.#ready}/ready`)).text
  }

  async ask(name: string, type: string): Promise<Answer> {
    const reply = readMessage(await this.#client.ask({ name, type, dnssecOk: true }))
    const of = (type: number) => reply.answer.filter((one) => one.type === type)
    const wanted = scanType(type)!
    return {
      rdata: of(wanted).map(({ rdata }) => rdata),
      rrsigs: of(RRType.RRSIG)
        .map(({ rdata }) => rdata)
        .filter((rrsig) => coveredType(rrsig) === wanted),
    }
  }
}

/** True if one of the keys has signed the answer. */
function isValid(
  owner: Uint8Array,
  type: number,
  of: Answer,
  keys: readonly Uint8Array[],
): boolean {
  const set = { owner, type, ttlSeconds: 1, rdata: of.rdata }
  return of.rrsigs.some((rrsig) => keys.some((dnskey) => verifySet(set, rrsig, dnskey)))
}

/** The zone as its servers and its parent have it now. */
class Site {
  readonly store: KeySecret
  readonly signers: Signer[] = []
  /** DS of the parent; empty = it has none yet. */
  ds: readonly Uint8Array[] = []
  /** An operator has confirmed that the parent has the DS. */
  #isConfirmed = true
  readonly faults: string[] = []
  validated = 0

  constructor(store: KeySecret) {
    this.store = store
  }

  /** Every server's keys must validate every server's answers. */
  async validate(): Promise<void> {
    const keys = await Promise.all(this.signers.map((one) => one.ask('k.example', 'DNSKEY')))
    const answers = await Promise.all(this.signers.map((one) => one.ask('www.k.example', 'A')))
    for (const [i, one] of keys.entries()) {
      const { length } = this.ds
      const anchors = one.rdata.filter((dnskey) => {
        return length === 0 || this.ds.some((ds) => matchesDs(ZONE, dnskey, ds))
      })
      if (!isValid(ZONE, RRType.DNSKEY, one, anchors)) this.faults.push(`DNSKEY of server ${i}`)
      for (const [j, answer] of answers.entries()) {
        const isSo = isValid(wire('www.k.example.'), RRType.A, answer, one.rdata)
        if (!isSo) this.faults.push(`A of server ${j} with the keys of server ${i}`)
        this.validated++
      }
    }
  }

  /** The parent takes the DS that the CDS of the last server ask for. */
  async followCds(): Promise<void> {
    const { rdata } = await this.signers.at(-1)!.ask('k.example', 'CDS')
    const print = (all: readonly Uint8Array[]) => all.map((one) => Buffer.from(one).toString('hex'))
    if (rdata.length === 0) return
    if (print(rdata).sort().join() !== print(this.ds).sort().join()) {
      this.ds = rdata
      this.#isConfirmed = false
    }
    const state = scanRollState((await this.store.readState(ZONE))!)
    if (this.#isConfirmed || !isAsked(state, Math.floor(systemClock.now() / 1000))) return
    this.#isConfirmed = true
    await this.request({ kind: 'published', ids: state.ds.keys })
  }

  request(request: RollRequest): Promise<void> {
    return this.store.editState(ZONE, (text) => requestRoll(text, request))
  }

  /** Validates all the time until that is so. */
  async until(isSo: () => Promise<boolean>, what: string): Promise<void> {
    const step = async (): Promise<boolean> => {
      await this.validate()
      await this.followCds()
      return isSo()
    }
    await until(step, what, STEP_MS_MAX).catch(async (error: Error) => {
      const output = this.signers.map(({ server }) => server.output()).join('\n')
      throw new Error(`${error.message}\n${output}\n${await this.store.readState(ZONE)}`)
    })
  }

  async tags(): Promise<string[]> {
    return (await this.store.load()).keys.map(({ tag }) => String(tag)).sort()
  }
}

t.test('servers with one Secret', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await deploy(cluster)
  await applyAll(cluster, composeManifests('deploy/zone-keys'))
  const right = `${SYSTEM} ${NAME}`
  await rightsInForce(cluster, 'server', [
    ...['get', 'update'].map((verb) => `${verb} secrets ${right}`),
    ...['get', 'update'].map((verb) => `${verb} coordination.k8s.io:leases ${right}`),
    `create coordination.k8s.io:leases ${SYSTEM}`,
  ])
  for (const excess of [`get secrets ${SYSTEM} other`, `list secrets ${SYSTEM}`])
    t.notOk(await may(cluster, 'server', excess), excess)
  const kubeconfig = await writeKubeconfig(cluster, 'sextant-server', temporaryDirectory(t))

  const refused = await Signer.start(t, kubeconfig).catch((error: Error) => error)
  t.match(String(refused), `kubectl create secret generic -n ${SYSTEM} ${NAME}`)
  await cluster.must('POST', `/api/v1/namespaces/${SYSTEM}/secrets`, { metadata: { name: NAME } })

  const { api } = await openApi({ kubeconfig: cluster.kubeconfig('admin'), context: '' })
  const parts = { api, clock: systemClock, timers: systemTimers }
  const site = new Site(new KeySecret({ ...parts, namespace: SYSTEM, name: NAME }))
  site.signers.push(...(await Promise.all([0, 1].map(() => Signer.start(t, kubeconfig)))))
  const isSigned = async (): Promise<boolean> => {
    const replies = await Promise.all(site.signers.map((one) => one.ask('k.example', 'DNSKEY')))
    return replies.every(({ rrsigs }) => rrsigs.length > 0)
  }
  await until(isSigned, 'both to sign', STEP_MS_MAX)
  const [first] = await site.tags()
  t.strictSame(await site.tags(), [first], 'one of them made a key')
  await site.until(async () => site.ds.length > 0, 'the DS')

  const place = ['-secret', `${SYSTEM}/${NAME}`, '--kubeconfig', cluster.kubeconfig('admin')]
  const { code, stdout } = await runSextant('.', ['keys', 'roll', 'k.example', '--csk', ...place])
  t.match([code, stdout], [0, 'the server will carry out: request roll csk'])
  await site.until(async () => (await site.tags()).length === 2, 'the new key')
  const isLeader = ({ server }: Signer): boolean => server.output().includes(`${NAME}: ours`)
  const leader = site.signers.find(isLeader)!
  t.equal(site.signers.filter(isLeader).length, 1, 'one holds the lease')
  const before = (await cluster.must('GET', LEASE)).spec.holderIdentity
  site.signers.splice(site.signers.indexOf(leader), 1)
  leader.server.process.kill('SIGKILL')
  const isTaken = async (): Promise<boolean> =>
    (await cluster.must('GET', LEASE)).spec.holderIdentity !== before
  await site.until(isTaken, 'the other to get the lease')
  // A third one joins in the middle.
  site.signers.push(await Signer.start(t, kubeconfig))
  const isDone = async (): Promise<boolean> => {
    const tags = await site.tags()
    return tags.length === 1 && tags[0] !== first
  }
  await site.until(isDone, 'the roll to end')
  t.strictSame(site.faults, [])
  t.ok(site.validated > 100, `${site.validated} answers`)
  t.comment(`${site.validated} answers`)
  const { data } = await cluster.must('GET', `/api/v1/namespaces/${SYSTEM}/secrets/${NAME}`)
  const made = Object.keys(data).filter((name) => name.endsWith('.key'))
  t.equal(made.length, 2, 'two keys were made in all')
  for (const { server } of site.signers)
    t.notMatch(server.output(), /lacks private keys|PrivateKey|can't (?:read|change)/)
})

type Members = Readonly<Record<string, string>>

/** What happens to the members of the Secret, undefined = it is deleted; and what the ready page says then. */
const FAULTS: Readonly<
  Record<string, readonly [change: (members: Members) => object | undefined, says: RegExp]>
> = {
  'is deleted': [
    () => undefined,
    /Secret sextant-system\/sextant-zone-keys does not exist; create it: kubectl create secret generic -n sextant-system sextant-zone-keys/,
  ],
  'is emptied': [() => ({}), /has lost the state of the rolls; restore a backup of it/],
  'loses its private keys': [
    (members) => pick(members, /(key|state)$/),
    /lacks private keys in use: Kk\.example\.\+013\+\d+; restore them, or replace/,
  ],
  'has a broken private key': [
    (members) => replace(members, /private$/, 'Private-key-format: v1.3\nAlgorithm: 13\n'),
    /Secret sextant-system\/sextant-zone-keys, Kk\.example\._013_\d+\.private:1: the line PrivateKey is missing/,
  ],
  'has a broken public key': [
    (members) => replace(members, /key$/, 'nonsense'),
    /Secret sextant-system\/sextant-zone-keys, Kk\.example\._013_\d+\.key:1: the record must be OWNER/,
  ],
  'has a broken state': [
    (members) => replace(members, /state$/, '{'),
    /the state of key rolls must begin with 'sextant key rolls 1'; the zone stays signed/,
  ],
}

function pick(members: Members, pattern: RegExp): Members {
  return Object.fromEntries(Object.entries(members).filter(([name]) => pattern.test(name)))
}

function replace(members: Members, pattern: RegExp, text: string): Members {
  const base64 = Buffer.from(text).toString('base64')
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name, pattern.test(name) ? base64 : value]),
  )
}

t.test('a Secret that is lost or broken: the zone stays signed', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.createNamespace(SYSTEM)
  const secrets = `/api/v1/namespaces/${SYSTEM}/secrets`
  await cluster.must('POST', secrets, { metadata: { name: NAME } })
  const signer = await Signer.start(t, cluster.kubeconfig('admin'))
  const isReady = async (): Promise<boolean> => /^OK/.test(await signer.ready())
  await until(isReady, 'a signed zone', STEP_MS_MAX)
  const { rdata: dnskeys } = await signer.ask('k.example', 'DNSKEY')
  const { data } = await cluster.must('GET', `${secrets}/${NAME}`)
  const put = async (members: object): Promise<void> => {
    const { metadata } = await cluster.must('GET', `${secrets}/${NAME}`)
    await cluster.must('PUT', `${secrets}/${NAME}`, { metadata, data: members })
  }
  for (const [what, [change, says]] of Object.entries(FAULTS)) {
    const members = change(data)
    if (members === undefined) await cluster.must('DELETE', `${secrets}/${NAME}`)
    else await put(members)
    let page = ''
    const isSaid = async (): Promise<boolean> => says.test((page = await signer.ready()))
    await until(isSaid, `the ready page to say ${says}`, STEP_MS_MAX).catch((error: Error) => {
      throw new Error(`${what}: ${error.message}, it says ${page}`)
    })
    t.comment(`${what}: ${page.trim()}`)
    const www = await signer.ask('www.k.example', 'A')
    t.ok(isValid(wire('www.k.example.'), RRType.A, www, dnskeys), `${what}: the zone stays signed`)
    t.strictSame((await signer.ask('k.example', 'DNSKEY')).rdata, dnskeys, `${what}: same keys`)
    if (members === undefined)
      await cluster.must('POST', secrets, { metadata: { name: NAME }, data })
    else await put(data)
    await until(async () => !says.test(await signer.ready()), `${what}: its end`, STEP_MS_MAX)
  }
  t.strictSame((await signer.ask('k.example', 'DNSKEY')).rdata, dnskeys)
  const texts = Object.values<string>(data).map((one) => Buffer.from(one, 'base64').toString())
  const secret = texts.flatMap((text) => /^PrivateKey: (.*)$/m.exec(text)?.[1] ?? [])
  t.equal(secret.length, 1)
  t.notOk(signer.server.output().includes(secret[0]!), 'a private key is never logged')
})
