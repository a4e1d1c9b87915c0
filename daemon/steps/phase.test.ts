import { expect, test } from 'vitest';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import { NODE_STATES, type Phase, PROBLEMS, stateOf } from './phase.ts';

const plan: UpdatePlan = { config: 'rendered-2', staged: true, actions: [], causes: [], source: 'test' };

test.each<[Phase, ReturnType<typeof stateOf>]>([
  [{ kind: 'updated' }, ['updated']],
  [{ kind: 'drifted', reason: 'ConfigDrift', why: 'edited', byHand: [] }, ['drifted', 'ConfigDrift']],
  [{ kind: 'preparing' }, ['preparing']],
  [{ kind: 'preparing', staging: { bytesDone: 1, bytesTotal: 2 } }, ['preparing']],
  [{ kind: 'preparing', problem: 'no room' }, ['preparing', 'PrepareFailed']],
  [{ kind: 'preparing', problem: 'no signature', refused: false }, ['preparing', 'PrepareFailed']],
  [{ kind: 'preparing', problem: 'no signature', refused: true }, ['preparing', 'PrepareRefused']],
  [{ kind: 'waiting', plan, why: 'no grant' }, ['waiting']],
  [{ kind: 'armed', plan }, ['armed']],
  [{ kind: 'applying', plan, doing: 'DaemonReload' }, ['applying']],
  [{ kind: 'rebooting', plan }, ['rebooting']],
  [{ kind: 'verifying', plan, doing: 'checks' }, ['verifying']],
  [{ kind: 'rollingBack', plan, why: 'no route', reason: 'UpdateFailed' }, ['rollingBack', 'UpdateFailed']],
  [{ kind: 'degraded', why: 'no route', reason: 'HealthCheckFailed' }, ['degraded', 'HealthCheckFailed']],
])('the phase %j is the state %j', (phase, expected) => {
  const [state, problem] = stateOf(phase);
  expect([state, ...(problem === undefined ? [] : [problem])]).toEqual(expected);
  expect(NODE_STATES).toContain(state);
  if (problem !== undefined) expect(PROBLEMS).toContain(problem);
});
