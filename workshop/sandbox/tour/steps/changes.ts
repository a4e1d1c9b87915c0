import { MachineConfigs } from '../../../../api/machine-config.ts';
import { annotations } from '../../../../api/names.ts';
import {
  expectActions,
  expectNoDisturbance,
  expectNoReboot,
  expectOneAtATime,
  expectOneReboot,
  expectRunningText,
  servicesSince,
} from '../expect-nodes.ts';
import { buildOf, newConfig, rollOut } from '../roll-out.ts';
import type { TourStep } from '../step.ts';

const FILE = '/etc/chrony.conf';
const TEXT = 'ntp3.example.org';
const ACTION = 'Restart(chronyd.service)';

/** A file whose policy says which service to restart: a new image, taken without a reboot. */
export const liveChange: TourStep = {
  title: 'A change without a reboot: chrony.conf, whose policy requires Restart(chronyd.service)',
  async run(tour) {
    const rolledOut = await rollOut(tour, {
      what: 'every node has the new chrony.conf',
      mode: 'Layered',
      act: () => tour.applyExamples('tour/chrony-v2.yaml'),
      missingInConfig: newConfig,
    });
    const rendered = await tour.client.get(MachineConfigs, buildOf(tour, 'worker').spec.machineConfig.name, {
      signal: tour.signal,
    });
    const foreseen = rendered.metadata.annotations?.[annotations.transitions];
    tour.check(
      'the rendered config predicted the actions before the build',
      foreseen?.includes(`3 nodes: ${ACTION}`) === true,
      foreseen,
    );
    const transitions = buildOf(tour, 'worker').status?.transitions?.map(({ actions }) => actions) ?? [];
    tour.check(`the image's label requires ${ACTION}`, transitions.includes(ACTION), transitions);
    expectActions(tour, rolledOut, ACTION);
    expectNoReboot(tour, rolledOut);
    expectNoDisturbance(tour, rolledOut);
    await expectRunningText(tour, rolledOut, FILE, TEXT);
    const staged = await Promise.all(rolledOut.nodes.map(({ after }) => after.next.read(FILE)));
    tour.check(
      'the deployment for the next boot of every node has it too',
      staged.every((content) => content?.includes(TEXT)),
      staged,
    );
    tour.check(
      'the deployment for the next boot is the new image',
      rolledOut.nodes.every(
        ({ after, object }) => after.next.image === object.status?.configImage?.currentImage,
      ),
      rolledOut.nodes.map(({ after }) => after.next.image),
    );
    const restarted = rolledOut.nodes.map((node) =>
      servicesSince(node).map(({ action, unit }) => `${action} ${unit}`),
    );
    tour.check(
      'chronyd was restarted once on every node, and nothing else',
      restarted.every((units) => units.join() === 'restart chronyd.service'),
      restarted,
    );
  },
};

const ARGUMENT = 'transparent_hugepage=madvise';

/** Only a boot changes the kernel's command line: cordon, drain, reboot, one node at a time. */
export const rebootChange: TourStep = {
  title: 'A change that requires a reboot: a kernel argument',
  async run(tour) {
    const rolledOut = await rollOut(tour, {
      what: 'every node booted with the new kernel argument',
      mode: 'Layered',
      act: () => tour.applyExamples('tour/karg.yaml'),
      missingInConfig: newConfig,
    });
    const transitions = buildOf(tour, 'worker').status?.transitions?.map(({ actions }) => actions) ?? [];
    tour.check("the image's label requires Reboot", transitions.includes('Reboot'), transitions);
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

/** A file that no policy names, with one that a policy does: a reboot does the work of both. */
export const mixedChange: TourStep = {
  title: 'A mixed change: chrony.conf and a file that no policy covers',
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
