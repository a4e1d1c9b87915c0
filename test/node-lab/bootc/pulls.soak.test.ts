/** bootc's own pulls: policy, mirrors and credentials as it reads them. */
import { bootc } from '../../../daemon/os/bootc/bootc.ts';
import { pullsOfTool } from '../tool-pulls.ts';
import { givenSystem, noBootc } from './given-bootc.ts';

pullsOfTool('bootc', bootc, () => givenSystem(), noBootc);
