import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { Siblings } from '../../../src/plugins/kuadrant/siblings.ts'
import { isSourceOpen } from '../../../src/record/manifests/shared-source.ts'
import { SetUp } from '../../support/setup.ts'

t.test('what another block has it claim while it is shut down is given back', async (t) => {
  const directory = t.testdir()
  const corefile = `kuadrant {\n manifests ${directory}\n}`
  const setUp = new SetUp(kuadrant, corefile, ['k.example.com.'])
  const claimed = Siblings.of(setUp.corefile).claimAll()
  await setUp.stop()
  await claimed
  t.notOk(isSourceOpen(directory), 'nobody reads the directory any more')
})

t.test('it has the records as soon as another block has it claim its zones', async (t) => {
  const directory = t.testdir()
  const corefile = `kuadrant {\n manifests ${directory}\n}`
  const setUp = new SetUp(kuadrant, corefile, ['k.example.com.'])
  await Siblings.of(setUp.corefile).claimAll()
  t.ok(isSourceOpen(directory))
  await setUp.stop()
  t.notOk(isSourceOpen(directory))
})
