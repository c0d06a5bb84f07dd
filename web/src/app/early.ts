// Runs before the application has come, which is much more.

import { askAhead } from "./ahead";

askAhead(location.pathname, location.search);
