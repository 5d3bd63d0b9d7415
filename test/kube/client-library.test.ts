import t from 'tap'
import { createKubeConfig, type KubeConfig } from '../../src/kube/client-library.ts'

t.test('the library has what is declared of it', async (t) => {
  // Checked by the compiler: the declarations are ours, because the library may be missing.
  const { KubeConfig: Library } = await import('@kubernetes/client-node')
  const config: KubeConfig = new Library()
  const created = await createKubeConfig()
  t.ok(created instanceof Library)
  t.strictSame(Object.keys(created), Object.keys(config))
})
