// Runs before the application has come, which is much more.

import { askAhead } from "./ahead";
import { keepSearchWish } from "./searchWish";

keepSearchWish();
askAhead(location.pathname, location.search);
