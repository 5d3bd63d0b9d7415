import type { SetupContext } from '../../plugin/directive.ts'
import { AcceptedSinks } from './accepted-sinks.ts'
import type { LineSettings } from './line-settings.ts'
import { openSocket } from './open-socket.ts'
import { TapSink } from './sink.ts'
import { readTlsFiles } from './tls-files.ts'

interface LineCounts {
  readonly sent: (messages: number) => void
  readonly lost: (messages: number) => void
}

/** Returns what sends the messages of a line. Throws InputError if a file of TLS is missing or invalid. */
export function openLine(
  c: SetupContext,
  settings: LineSettings,
  counts: LineCounts,
): TapSink | AcceptedSinks {
  const { endpoint, skipVerify, listens, tls } = settings
  const { log, timers, clock, resources } = c
  const parts = { log, timers, seed: Math.floor(c.random() * 2 ** 32), ...counts }
  if (!listens) {
    return new TapSink(settings, { ...parts, open: () => openSocket(endpoint, skipVerify) })
  }
  const options = tls === undefined ? undefined : readTlsFiles(tls, c.block.root, skipVerify)
  return new AcceptedSinks(settings, { ...parts, clock, resources }, options)
}
