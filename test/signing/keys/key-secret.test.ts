import t from 'tap'
import { Algorithm } from '../../../src/dns/dnssec/algorithms.ts'
import { FLAGS_KSK, FLAGS_ZSK, generatePrivateKey } from '../../../src/dns/dnssec/dnskey.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { type ApiObject, isObject } from '../../../src/kube/api.ts'
import { isTemporaryFault, KeySecret } from '../../../src/signing/keys/key-secret.ts'
import { MemoryApi } from '../../support/memory-api.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const SECRETS = { group: '', version: 'v1', plural: 'secrets' }
const ZONE = scanName('k.example.')!
const ODD = scanName('a\\.b\\+c.Example.')!
const { EcdsaP256 } = Algorithm

class Stage {
  readonly api = new MemoryApi()
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()

  constructor(data: ApiObject = {}) {
    const metadata = { namespace: 'dns', name: 'keys' }
    this.api.put(SECRETS, { kind: 'Secret', apiVersion: 'v1', metadata, data })
  }

  store(generate = generatePrivateKey): KeySecret {
    const { api, clock, timers } = this
    return new KeySecret({ api, namespace: 'dns', name: 'keys', clock, timers, generate })
  }

  get data(): ApiObject {
    const data = this.api.all(SECRETS).get('dns/keys')?.data
    return data !== undefined && isObject(data) ? data : {}
  }
}

t.test('keys and states are kept under names that a Secret may have', async (t) => {
  const stage = new Stage()
  const store = stage.store()
  t.strictSame(await store.load(), { keys: [], faults: [] })
  t.equal(await store.readState(ZONE), undefined)
  const made = [
    await store.create(ZONE, EcdsaP256, FLAGS_KSK),
    await store.create(ODD, EcdsaP256, FLAGS_ZSK),
  ]
  await store.editState(ZONE, () => 'one\n')
  await store.editState(ZONE, (text) => `${text}two\n`)
  await store.editState(ODD, () => undefined)
  for (const name of Object.keys(stage.data)) t.match(name, /^[-._a-zA-Z0-9]+$/)
  const other = stage.store()
  const { keys, faults } = await other.load()
  t.strictSame(faults, [])
  t.strictSame(keys.map(({ id }) => id).sort(), made.map(({ id }) => id).sort())
  for (const key of keys) t.not(key.privateKey, undefined)
  t.equal(await other.readState(ZONE), 'one\ntwo\n')
  await other.retire(made[0]!.id)
  await other.retire(made[0]!.id)
  t.strictSame(
    (await store.load()).keys.map(({ id }) => id),
    [made[1]!.id],
  )
  t.equal(Object.keys(stage.data).length, 5, 'a retired key is kept')
  await t.rejects(store.retire('Kother.+013+00001'), { message: /has no key Kother/ })
})

t.test('keys of other programs are added, with or without the private key', async (t) => {
  const { keys } = await (async () => {
    const stage = new Stage()
    await stage.store().create(ZONE, EcdsaP256, FLAGS_KSK)
    await stage.store().create(ZONE, EcdsaP256, FLAGS_ZSK)
    return stage.store().load()
  })()
  const store = new Stage().store()
  const [own, other] = [keys[0]!, keys[1]!]
  await store.add(own, own.privateKey, { Created: 1 })
  await store.add(other, undefined, {})
  const { keys: added, faults } = await store.load()
  t.strictSame(faults, [])
  t.match(
    added.map(({ id, privateKey, times }) => [id, privateKey !== undefined, times?.Created]),
    [
      [own.id, true, 1],
      [other.id, false, undefined],
    ],
  )
  await t.rejects(store.add(own, own.privateKey, {}), {
    message: /^Secret dns\/keys has, or had, a key of k\.example\. with tag \d+; make another key$/,
  })
})

t.test('of writes at the same time, none is lost', async (t) => {
  const stage = new Stage()
  const stores = Array.from({ length: 4 }, () => stage.store())
  const append = async (store: KeySecret): Promise<void> => {
    for (let i = 0; i < 3; i++) await store.editState(ZONE, (text = '') => `${text}x`)
  }
  await Promise.all([
    ...stores.map(append),
    ...stores.map((store) => store.create(ZONE, EcdsaP256, FLAGS_KSK)),
  ])
  t.equal(await stage.store().readState(ZONE), 'x'.repeat(12))
  t.equal((await stage.store().load()).keys.length, 4)
})

t.test('a tag is used once, also if its key is retired', async (t) => {
  const stage = new Stage()
  const privateKeys = [await generatePrivateKey(EcdsaP256), await generatePrivateKey(EcdsaP256)]
  let made = 0
  const store = stage.store(async () => privateKeys[made++ < 2 ? 0 : 1]!)
  const first = await store.create(ZONE, EcdsaP256, FLAGS_KSK)
  await store.retire(first.id)
  const second = await store.create(ZONE, EcdsaP256, FLAGS_KSK)
  t.equal(made, 3)
  t.not(second.tag, first.tag)
})

t.test('changes of other processes are noticed, own ones are not', async (t) => {
  const stage = new Stage()
  const [one, other] = [stage.store(), stage.store()]
  await one.load()
  let notices = 0
  const stop = one.watch(() => notices++)
  const check = async (): Promise<number> => {
    await stage.timers.advance(10_000)
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    return notices
  }
  t.equal(await check(), 0)
  await one.editState(ZONE, () => 'own')
  t.equal(await check(), 0)
  await other.editState(ZONE, () => 'foreign')
  t.equal(await check(), 1)
  t.equal(await check(), 1)
  await other.editState(ZONE, () => 'seen, but its keys are not loaded')
  await one.readState(ZONE)
  t.equal(await check(), 2)
  await other.editState(ZONE, () => 'foreign')
  await one.editState(ZONE, () => 'own, on top of it')
  t.equal(await check(), 3)
  stage.api.refuse = () => 503
  t.equal(await check(), 4, 'a Secret that cannot be read')
  t.equal(await check(), 4)
  stage.api.refuse = () => undefined
  t.equal(await check(), 5, 'and can be read again')
  t.equal(await check(), 5)
  stop()
  await other.editState(ZONE, () => 'later')
  t.equal(await check(), 5)
})

t.test('faults name the Secret and the fix, and never a key', async (t) => {
  const encode = (text: string): string => Buffer.from(text).toString('base64')
  const { faults } = await new Stage({
    'a.key': encode('nonsense'),
    'b.private': encode('Private-key-format: v1.3\nAlgorithm: 13\nPrivateKey: c2VjcmV0\n'),
  })
    .store()
    .load()
  t.equal(faults.length, 2)
  for (const { message, position } of faults) {
    t.match(`${position?.file ?? ''} ${message}`, /Secret dns\/keys, [ab]\./)
    t.notMatch(message, 'c2VjcmV0')
  }
  const missing = new Stage()
  missing.api.drop(SECRETS, 'dns/keys')
  const create = 'kubectl create secret generic -n dns keys'
  t.match((await missing.store().load()).faults[0]?.message, create)
  await t.rejects(
    missing.store().editState(ZONE, () => 'x'),
    { message: new RegExp(create) },
  )
  const refusing = new Stage()
  refusing.api.refuse = () => 403
  const [refused] = (await refusing.store().load()).faults
  t.match(refused?.message, /can't read Secret dns\/keys: .*403/)
  t.ok(
    refused?.message.endsWith(
      'add the rule {apiGroups: [""], resources: [secrets], resourceNames: [keys], verbs: [get, update]} to a Role in dns',
    ),
  )
  await t.rejects(refusing.store().create(ZONE, EcdsaP256, FLAGS_KSK), {
    message: /Secret dns\/keys/,
  })
  const isTemporary = async (stage: Stage): Promise<boolean> =>
    isTemporaryFault((await stage.store().load()).faults[0]!)
  t.notOk(await isTemporary(missing))
  t.notOk(await isTemporary(refusing))
  refusing.api.refuse = () => 503
  t.ok(await isTemporary(refusing), 'an API server that does not work')
})
