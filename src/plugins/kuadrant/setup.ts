import { isLocalZone } from '../../dnsrecord/local-zone.ts'
import type { Directive } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { KuadrantBlocks } from '../../publish/publisher-group.ts'
import { faultAt } from '../../publish/source-fault.ts'
import { ThreadedZones } from '../../publish/threaded-zones.ts'
import { prepareService } from './block-service.ts'
import { KuadrantHandler } from './kuadrant.ts'
import { draftOptions, scanOptions } from './options.ts'
import { preparePassing } from './passing.ts'
import { scanSender, TakesNotify } from './takes-notify.ts'

/** `kuadrant`: zones built from DNSRecords. */
export const kuadrant: Directive = {
  name: 'kuadrant',
  setup(c) {
    const blocks = KuadrantBlocks.of(c.corefile)
    const draft = draftOptions(c.dispenser)
    blocks.addDraft(draft)
    // Registered before the scan, so that an invalid property does not hide faults of the manifests.
    let isScanned = false
    c.onCheck(async (report) => {
      if (!isScanned && !draft.hasSource) return []
      const { checkBlock } = await import('./check.ts')
      return checkBlock(draft, blocks.drafts, report, c.block.geoCodes).catch(
        faultAt(draft.position),
      )
    })
    const options = scanOptions(c.dispenser, c.block, draft)
    isScanned = true
    const path = options.snapshot?.path
    if (path !== undefined && blocks.options.some((other) => other.snapshot?.path === path)) {
      throw c.dispenser.error(`snapshot ${path} is that of another block: name another file`)
    }
    const name = blocks.otherNameOf(options)
    if (name !== '') {
      throw c.dispenser.error(`another block says that the same records are of site ${name}`)
    }
    if (blocks.probesOtherwise(options)) {
      throw c.dispenser.error('probe says otherwise than in another block with the same manifests')
    }
    if (blocks.sharesMemory(options)) {
      throw c.dispenser.error('remember: that file is of another site; name another one')
    }
    const share = new ThreadedZones(c)
    const handlerOf = (next: Handler): Handler =>
      new KuadrantHandler(next, share, options.fallthrough)
    if (options.zones.some(isLocalZone)) {
      const passing = preparePassing(c, options)
      const report = c.toControl((text) => {
        const sender = scanSender(text)
        blocks.takeNotify(sender.host)
        passing?.take(sender)
      })
      const takesNotify = (next: Handler): Handler => new TakesNotify(handlerOf(next), next, report)
      c.addHandler(takesNotify, { seesNotify: true, answers: true })
      c.onLinked(() => {
        const hasPeers = blocks.options.some(({ peering }) => peering.peers.length > 0)
        if (hasPeers || options.pass !== undefined) c.block.takesNotify = true
      })
    } else c.addHandler(handlerOf, { answers: true })
    prepareService(c, options, share, blocks)
  },
}
