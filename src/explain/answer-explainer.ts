import { escapeControls } from '../base/telemetry/log.ts'
import type { AddressFamily } from '../dns/text/address.ts'
import type { AnswerExplainer } from '../plugin/answer-explainer.ts'
import type { Instance } from '../server/instance.ts'
import { Explainer } from './explainer.ts'
import { printExplanation } from './print.ts'
import { scanExplainQuestion } from './question.ts'

/** Opens an explainer for directives that send explanations to clients. */
export async function openAnswerExplainer(instance: Instance): Promise<AnswerExplainer> {
  const explainer = await Explainer.open(instance)
  return {
    lines: ({ query, random, server }, name, type) => {
      const family = query.peerFamily as AddressFamily
      const ecsFamily = query.ecsFamily as AddressFamily
      const ecsOctets = query.ecsFamily === 1 ? 4 : 16
      const hasSubnet = query.ecsFamily !== 0
      const explanation = explainer.explain({
        name,
        type,
        source: { family, bytes: query.peerAddress.slice(0, family === 1 ? 4 : 16) },
        subnet: hasSubnet
          ? {
              family: ecsFamily,
              bytes: query.ecsAddress.slice(0, ecsOctets),
              bits: query.ecsSourceBits,
            }
          : undefined,
        seed: random.next32(),
        address: server.address,
      })
      return printExplanation(explanation).map(escapeControls)
    },
    explain: (question) => explainer.explain(scanExplainQuestion(question)),
    whatIf: (order) => explainer.whatIf(order),
    map: (question) => explainer.map(question),
    close: () => explainer.close(),
  }
}
