import t from 'tap'
import {
  confirmationOf,
  confirmationOfDraft,
  faultOfManifests,
  scanAct,
  whatIfOf,
} from '../../../src/api/console/client/views/act/order.ts'

const SHIFT = { name: ' app.example ', to: 'b', steps: '5%,50%', bake: '1m' }
const DRAFT = {
  act: 'drain',
  selector: ' site:a ',
  until: '',
  manifests: ' ',
  shift: SHIFT,
} as const

t.test('what to type before an order is sent', async (t) => {
  for (const [selector, text] of [
    ['site:dublin', 'dublin'],
    ['host:app.example.com site:dublin', 'dublin'],
    ['host:*.example.com', '*.example.com'],
    ['site:"two words"', 'two words'],
    ['site:"a\\u202eb"', 'a\\u{202e}b'],
    ['host:"unclosed', '"unclosed'],
    [' id:eu-1 ', 'id:eu-1'],
    ['1f2e3d4c', '1f2e3d4c'],
    ['website:x', 'website:x'],
    ['', ''],
  ] as const) {
    t.equal(confirmationOf(selector), text, selector)
  }
})

t.test('what is previewed', async (t) => {
  t.strictSame(whatIfOf(DRAFT), { drain: 'site:a' })
  t.strictSame(whatIfOf({ ...DRAFT, act: 'undrain' }), { undrain: 'site:a' })
  t.equal(whatIfOf({ ...DRAFT, selector: ' ' }), undefined)
  t.equal(whatIfOf({ ...DRAFT, act: 'manifests' }), undefined)
  t.strictSame(whatIfOf({ ...DRAFT, act: 'manifests', manifests: 'a' }), { manifests: 'a' })
  const shift = { ...DRAFT, act: 'shift' } as const
  t.strictSame(whatIfOf(shift), { shift: { name: 'app.example', to: 'b', percent: 50 } })
  t.equal(whatIfOf({ ...shift, shift: { ...SHIFT, steps: 'x' } }), undefined)
  t.equal(confirmationOfDraft(shift), 'app.example')
  t.equal(scanAct('<script>'), 'drain')
  t.equal(scanAct('undrain'), 'undrain')
  t.equal(faultOfManifests('x'.repeat(999_000)), '')
  t.match(faultOfManifests('"'.repeat(600_000)), /1 MB/, 'as JSON, it is longer')
})
