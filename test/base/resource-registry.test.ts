import t from 'tap'
import { ResourceRegistry } from '../../src/base/resource-registry.ts'

/** A resource that counts its objects. */
class Numbered {
  static made = 0
  readonly number = ++Numbered.made
  isClosed = false

  close(): void {
    this.isClosed = true
  }
}

/** One without an end. */
class Plain {}

const create = (): Numbered => new Numbered()

t.test('created for the first user, closed after the last, and created anew then', async (t) => {
  const resources = new ResourceRegistry()
  const first = resources.acquire(Numbered, 'a', create)
  const second = resources.acquire(Numbered, 'a', create)
  const other = resources.acquire(Numbered, 'b', create)
  t.equal(first.item, second.item)
  t.not(first.item, other.item)
  first.release()
  first.release()
  t.equal(first.item.isClosed, false, 'two calls of release count once')
  second.release()
  t.equal(first.item.isClosed, true)
  t.equal(other.item.isClosed, false)
  t.not(resources.acquire(Numbered, 'a', create).item, first.item)
})

t.test('classes have keys of their own, and registries have objects of their own', async (t) => {
  const resources = new ResourceRegistry()
  const plain = resources.acquire(Plain, 'a', () => new Plain())
  const numbered = resources.acquire(Numbered, 'a', create)
  t.not(new ResourceRegistry().acquire(Numbered, 'a', create).item, numbered.item)
  plain.release()
  t.equal(resources.find(Plain, 'a'), undefined)
  t.equal(resources.find(Numbered, 'a'), numbered.item)
})

t.test('a search adds no use', async (t) => {
  const resources = new ResourceRegistry()
  const leases = ['a 1', 'a 2', 'b 1'].map((key) => resources.acquire(Numbered, key, create))
  const items = leases.map(({ item }) => item)
  t.strictSame(resources.withPrefix(Numbered, 'a '), items.slice(0, 2))
  t.strictSame(resources.withPrefix(Plain, ''), [])
  for (const { release } of leases) release()
  t.strictSame(
    items.map(({ isClosed }) => isClosed),
    [true, true, true],
  )
  t.equal(resources.find(Numbered, 'a 1'), undefined)
})

t.test('a resource that can not be created has no user', async (t) => {
  const resources = new ResourceRegistry()
  const fail = (): Numbered => {
    throw new Error('no')
  }
  t.throws(() => resources.acquire(Numbered, 'a', fail), { message: 'no' })
  t.equal(resources.find(Numbered, 'a'), undefined)
  resources.acquire(Numbered, 'a', create).release()
  t.equal(resources.find(Numbered, 'a'), undefined)
})
