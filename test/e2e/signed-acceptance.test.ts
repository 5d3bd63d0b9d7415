import t from 'tap'
import { needs } from '../support/peer.ts'
import { until } from '../support/until.ts'
import { Stage } from './signed-stage.ts'

// Long: keys roll for two minutes.

/*
 * Zones of DNSRecords with every kind of steering, on two servers with the same keys. Unbound, BIND, delv and a validator in
 * this process ask them while records change, endpoints fail, keys roll, and servers reload, restart and are taken over.
 */

/** Answers to validate at least: 100 000 for a release. Each 500 there is an edit. */
const ANSWERS = Number(process.env.SEXTANT_VALIDATED_ANSWERS ?? 20_000)
const EDITS = Math.ceil(ANSWERS / 500)
/** Reloads, takeovers and restarts. */
const DISTURBANCES = 6
const ROLLS_MS_MAX = 600_000
t.setTimeout(1_200_000 + ANSWERS * 30)

const tools = needs('dig', 'delv', 'unbound', 'named', 'knotd', 'nsupdate')
t.test('resolvers validate each answer while all changes', tools, async (t) => {
  const stage = await Stage.start(t)
  await stage.askAll()
  await stage.rollKeys()
  for (let edit = 0; edit < EDITS; edit++) {
    stage.edit()
    if (edit % 4 === 0) stage.drain(edit % 8 === 0)
    if (edit % Math.ceil(EDITS / DISTURBANCES) === 0) await stage.disturb()
    const goal = Math.min(ANSWERS, (edit + 1) * 500)
    await until(() => stage.count >= goal, `${goal} answers`, 120_000)
  }
  await until(() => stage.areRolled, 'the ends of all rolls', ROLLS_MS_MAX).catch((error) => {
    t.fail(`${error}: ${stage.describeKeys()}`)
  })
  await stage.stop()
  stage.report(ANSWERS)
})
