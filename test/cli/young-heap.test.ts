import { spawnSync } from 'node:child_process'
import t from 'tap'
import { keepHeapYoung } from '../../src/cli/young-heap.ts'

const YOUNG_HEAP_FLAG = '--no-allocation-site-pretenuring'

/** What a process says that does nothing but start with that flag; V8 only prints flags that it does not know. */
function startWith(flag: string): { status: number | null; stderr: string } {
  return spawnSync(process.execPath, [flag, '-e', ''], { encoding: 'utf8', env: {} })
}

t.test('the flag is one that this V8 has, and may be set while it runs', (t) => {
  t.match(startWith(YOUNG_HEAP_FLAG), { status: 0, stderr: '' })
  t.doesNotThrow(keepHeapYoung)
  t.end()
})

t.test('a flag that V8 has dropped would be noticed', (t) => {
  t.notMatch(startWith('--no-allocation-site-nonsense'), { status: 0 })
  t.end()
})
