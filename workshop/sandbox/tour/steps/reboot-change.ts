import { expectActions, expectOneAtATime, expectOneReboot } from '../expect-nodes.ts';
import { buildOf, newConfig, rollOut } from '../roll-out.ts';
import type { TourStep } from '../step.ts';

const ARGUMENT = 'transparent_hugepage=madvise';

/** Only a boot changes the kernel's command line: cordon, drain, reboot, one node at a time. */
export const rebootChange: TourStep = {
  title: 'A change that reboots: a kernel argument',
  async run(tour) {
    const rolledOut = await rollOut(tour, {
      what: 'every node booted with the new kernel argument',
      mode: 'Layered',
      act: () => tour.applyExamples('tour/karg.yaml'),
      missingInConfig: newConfig,
    });
    const transitions = buildOf(tour, 'worker').status?.transitions?.map(({ actions }) => actions) ?? [];
    tour.check("the image's label says Reboot", transitions.includes('Reboot'), transitions);
    expectActions(tour, rolledOut, 'Reboot');
    expectOneReboot(tour, rolledOut);
    expectOneAtATime(tour, rolledOut);
    tour.check(
      'every node booted with the argument',
      rolledOut.nodes.every(({ after }) => after.booted.kernelArguments.includes(ARGUMENT)),
      rolledOut.nodes.map(({ after }) => after.booted.kernelArguments),
    );
  },
};
