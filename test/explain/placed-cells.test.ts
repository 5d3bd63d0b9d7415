import t from 'tap'
import { PlacedCells } from '../../src/explain/map/placed-cells.ts'
import type { ClassTrie } from '../../src/geo/class-trie.ts'
import type { Locator } from '../../src/geo/locator.ts'

/** A locator whose classes fail with its name. */
function locator(name: string): Locator {
  return {
    locate: () => t.fail('no address is located'),
    field: () => '',
    classify: (): Promise<ClassTrie> => Promise.reject(new Error(name)),
    onChange: () => () => {},
  } as unknown as Locator
}

t.test('server blocks with other databases have other places', async (t) => {
  const cells = new PlacedCells()
  t.teardown(() => cells.close())
  const reasonOf = (name: string): Promise<unknown> =>
    cells.ofCodes(locator(name), [], []).catch((error) => error.message)
  t.strictSame(await Promise.all(['a', 'b'].map(reasonOf)), ['a', 'b'])
})
