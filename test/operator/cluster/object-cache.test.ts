import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import type { Informer, InformerListener } from '../../../src/kube/informer.ts'
import { ObjectCache, trimObject } from '../../../src/operator/cluster/object-cache.ts'
import { at, dnsRecord } from '../../support/operator-objects.ts'
import { FakeClock } from '../../support/setup.ts'

const KEY = 'a/app'

function setUp() {
  const known = new Map<string, ApiObject>()
  let informed: InformerListener = {}
  const informer = {
    get: (key: string) => known.get(key),
    subscribe: (listener: InformerListener) => {
      informed = listener
      return () => {}
    },
  }
  const clock = new FakeClock()
  const cache = new ObjectCache(informer as unknown as Informer, clock)
  const put = (object: ApiObject): void => void known.set(KEY, object)
  const remove = (): void => {
    const before = known.get(KEY)
    known.delete(KEY)
    if (before !== undefined) informed.onDelete?.(KEY, before)
  }
  return { cache, clock, put, remove }
}

const version = (resourceVersion: string, uid = 'one'): ApiObject =>
  dnsRecord({ uid, metadata: { resourceVersion } })

const versionOf = (object: ApiObject | undefined): unknown =>
  at(object, 'metadata', 'resourceVersion')

t.test('our own write counts until the informer has it', (t) => {
  const { cache, put } = setUp()
  put(version('9'))
  cache.noteWritten(version('10'))
  t.equal(versionOf(cache.get(KEY)), '10')
  t.equal(cache.isEcho(KEY, version('10')), true)
  t.equal(cache.isEcho(KEY, version('11')), false)
  put(version('11'))
  t.equal(versionOf(cache.get(KEY)), '11')
  t.equal(cache.isEcho(KEY, version('10')), false, 'it is over')
  t.end()
})

t.test('an object that we deleted is gone, a new one of its name is not', (t) => {
  const { cache, put } = setUp()
  put(version('9'))
  cache.noteDeleted(version('9'))
  t.equal(cache.get(KEY), undefined)
  put(version('12', 'two'))
  t.equal(versionOf(cache.get(KEY)), '12')
  t.end()
})

t.test('an object with a later version exists, whatever the API responded', (t) => {
  for (const { name, deleted, watched, want } of [
    { name: 'as it was known then', deleted: '9', watched: '12', want: undefined },
    { name: 'as the caller knew it', deleted: '14', watched: '14', want: undefined },
    { name: 'later', deleted: '9', watched: '13', want: '13' },
  ]) {
    const { cache, put } = setUp()
    put(version('12'))
    cache.noteDeleted(version(deleted))
    t.equal(cache.get(KEY), undefined, name)
    put(version(watched))
    t.equal(versionOf(cache.get(KEY)), want, name)
  }
  t.end()
})

t.test('an object that we created is forgotten when the informer reports its deletion', (t) => {
  const { cache, put, remove } = setUp()
  put(version('9'))
  cache.noteWritten(version('10'))
  remove()
  t.equal(cache.get(KEY), undefined)
  t.end()
})

t.test('an object that the informer reported as deleted before the API responded is gone', (t) => {
  const { cache, put, remove } = setUp()
  put(version('9'))
  remove()
  cache.noteWritten(version('10'))
  t.equal(cache.get(KEY), undefined)
  cache.noteWritten(version('12', 'two'))
  t.equal(versionOf(cache.get(KEY)), '12', 'a new object of its name is another one')
  t.end()
})

t.test('an object that the informer had before the API responded is not stored', (t) => {
  const { cache, put } = setUp()
  cache.noteDeleted(version('9'))
  put(version('9'))
  t.equal(versionOf(cache.get(KEY)), '9')
  put(version('11'))
  cache.noteWritten(version('10'))
  t.equal(cache.isEcho(KEY, version('10')), false)
  t.end()
})

t.test('a write without a watch event is forgotten after a minute', (t) => {
  const { cache, clock } = setUp()
  cache.noteWritten(version('10'))
  clock.monotonicMs += 59_999
  t.equal(versionOf(cache.get(KEY)), '10')
  clock.monotonicMs += 1
  t.equal(cache.get(KEY), undefined)
  t.end()
})

t.test('only our own entry of the managed fields is kept', (t) => {
  const managed = (...managers: readonly string[]) =>
    at(
      trimObject(
        dnsRecord({
          metadata: { managedFields: managers.map((manager) => ({ manager, fieldsV1: {} })) },
        }),
      ),
      'metadata',
      'managedFields',
    )
  t.strictSame(managed('kubectl', 'sextant-operator'), [{ manager: 'sextant-operator' }])
  t.equal(managed('kubectl'), undefined)
  t.end()
})
