import t from 'tap'
import { chooseGrouping } from '../../../../../src/transport/udp/batch/grouping/choose-grouping.ts'

t.test(
  'replies go in groups where the kernel cuts them, unless the operator says no',
  async (t) => {
    const [can, cannot] = [() => true, () => false]
    const table = [
      { forced: undefined, cuts: can, groups: true, says: '' },
      { forced: '', cuts: can, groups: true, says: '' },
      { forced: 'on', cuts: can, groups: true, says: '' },
      { forced: 'off', cuts: can, groups: false, says: ', replies one by one (SEXTANT_GSO)' },
      { forced: 'on', cuts: cannot, groups: false, says: ', replies one by one (no UDP_SEGMENT)' },
      { forced: '', cuts: cannot, groups: false, says: ', replies one by one (no UDP_SEGMENT)' },
    ]
    for (const { forced, cuts, groups, says } of table) {
      t.strictSame(chooseGrouping(forced, cuts), { groups, description: says }, says)
    }
    t.throws(() => chooseGrouping('always', can), {
      message: 'SEXTANT_GSO is "always"; unset it, or set it to on or off',
    })
  },
)
