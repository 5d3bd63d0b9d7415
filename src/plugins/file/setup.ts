import { FileZones } from '../../authority/file-zones.ts'
import { ThreadedFileZones } from '../../authority/threaded-file-zones.ts'
import { findWholeZones } from '../../authority/whole-zone.ts'
import { printName } from '../../dns/name/name.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { Directive } from '../../plugin/directive.ts'
import { scanConfig } from './config.ts'
import type { FileService } from './file-service.ts'

/** `file DBFILE [ZONES...] { … }`: zones from master files. */
export const file: Directive = {
  name: 'file',
  setup: (c) => {
    const { zones: configs, fallthrough } = scanConfig(c)
    const served = new ThreadedFileZones(c, 'file')
    const isWhole = findWholeZones(c, {
      directive: 'file',
      fallthrough,
      zones: configs.map(({ zone }) => zone),
    })
    // Until the zones are loaded, they answer SERVFAIL.
    served.publish(
      configs.map(({ zone, path }) => {
        return {
          zone,
          zoneText: printName(zone),
          path,
          answerer: undefined,
          shared: undefined,
          serial: -1,
        }
      }),
    )
    const options = { name: 'file', table: served.table, fallthrough }
    let service: FileService | undefined
    let isStopped = false
    /** Only the control thread needs it, so it is not loaded before. */
    const open = async (): Promise<FileService | undefined> => {
      const loaded = await import('./file-service.ts')
      if (!isStopped) service = new loaded.FileService(c, { configs, served, isWhole })
      return service
    }
    const part: DirectivePart = {
      handler: (next) => new FileZones(next, options),
      answers: true,
      problems: () => service?.problemGroups() ?? [],
      check: async (report) => {
        const { checkZone } = await import('./file-service.ts')
        const { DELEGATION_CHECK } = await import('../../authority/delegation-check.ts')
        const delegations = c.shared.acquire(DELEGATION_CHECK)
        return configs.flatMap((config) => {
          const { zone } = config
          const options = { isUnsigned: served.signs(zone), isWhole: isWhole(zone), delegations }
          return checkZone(config, options, report)
        })
      },
      offline: async ({ answers }) => {
        if (answers) await (await open())?.loadOffline()
      },
      start: async () => (await open())?.start(),
      stop: () => {
        isStopped = true
        service?.stop()
      },
    }
    return [served.part, part]
  },
}
