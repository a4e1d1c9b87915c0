/** What a rollout waits for before it starts with further nodes: reasons of the condition UpdatesHeld. */
export const START_WAIT_REASONS = [
  'DependencyCircle',
  'AwaitingPools',
  'AlertsFiring',
  'AlertsUnknown',
  'QueriesHold',
  'QueriesUnknown',
  'WaveIncomplete',
  'Baking',
] as const;
export type StartWaitReason = (typeof START_WAIT_REASONS)[number];

export interface StartWait {
  readonly reason: StartWaitReason;
  /** A clause of a message. */
  readonly why: string;
  /** When it ends, in ms since the epoch; absent where more than time is missing. */
  readonly until?: number;
}
