import {
  expectActions,
  expectOneAtATime,
  expectOneReboot,
  expectRunningText,
  servicesSince,
} from '../expect-nodes.ts';
import { newConfig, rollOut } from '../roll-out.ts';
import type { TourStep } from '../step.ts';

/** A file that no policy names, with one that a policy does: a reboot does the work of both. */
export const mixedChange: TourStep = {
  title: 'A mixed change: chrony.conf together with a file that no policy names',
  async run(tour) {
    const rolledOut = await rollOut(tour, {
      what: 'every node booted with both files',
      mode: 'Layered',
      act: () => tour.applyExamples('tour/mixed.yaml'),
      missingInConfig: newConfig,
    });
    expectActions(tour, rolledOut, 'Reboot');
    expectOneReboot(tour, rolledOut);
    const restarted = rolledOut.nodes.flatMap(servicesSince);
    tour.check('no service was restarted before the reboot', restarted.length === 0, restarted);
    expectOneAtATime(tour, rolledOut);
    await expectRunningText(tour, rolledOut, '/etc/profile.d/idle-timeout.sh', 'TMOUT=600');
    await expectRunningText(tour, rolledOut, '/etc/chrony.conf', 'without the retired one');
  },
};
