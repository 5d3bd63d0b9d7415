import { EventRecorder, type EventRecorderOptions } from '../../src/kube/event-recorder.ts'

/** A recorder of Events for unit tests of what records them. */
export function eventRecorder(
  env: Omit<EventRecorderOptions, 'controller' | 'instance'>,
): EventRecorder {
  return new EventRecorder({ ...env, controller: 'sextant.test/operator', instance: 'one' })
}
