import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { ServerStatus } from '../../../../base/telemetry/status.ts'
import type { Polled } from './use-polled.ts'

export const StatusContext = createContext<Polled<ServerStatus>>({
  data: undefined,
  error: '',
  receivedMs: undefined,
  refresh: () => {},
})

/** Returns the status of the server, which the shell polls for all views. */
export function useStatus(): Polled<ServerStatus> {
  return useContext(StatusContext)
}
