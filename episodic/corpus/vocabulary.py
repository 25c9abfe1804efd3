"""The words that fill the slots: goods, places, people and codes, the most frequent ones first."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BRANDS",
    "CARRIERS",
    "CITIES",
    "CODES",
    "COLLEAGUES",
    "COLOURS",
    "COUNTRIES",
    "COUPONS",
    "CURRENCIES",
    "DEVICES",
    "EMOJI",
    "FAULTS",
    "JOBS",
    "MAIL_HOSTS",
    "MODULES",
    "MONTHS",
    "OCCASIONS",
    "PLACES",
    "PLANS",
    "RELATIVES",
    "SERIES",
    "STREETS",
    "STREET_KINDS",
    "THINGS",
    "WEEKDAYS",
]

BRANDS: Final = (
    *("Norvik", "Auralis", "Kestora", "Lumafax", "Bryndal", "Tessaro", "Helvanta", "Ostravel", "Quillon", "Maribo"),
    *("Fenwicke", "Zentari", "Pallaro", "Vintrell", "Corvana", "Dromund", "Elyria", "Sundberge", "Hexley", "Jorvex"),
    *("Kalmeron", "Lirico", "Mundara", "Nimbaro", "Orsolo", "Peregrin", "Rhodara", "Silvane", "Tarnel", "Umbriq"),
    *("Varnholt", "Wexmoor", "Xyloma", "Yorvale", "Zephrine", "Alderic", "Bosconi", "Cindral", "Delphor", "Eskaril"),
)
SERIES: Final = (
    *("Pro", "Mini", "Plus", "Classic", "Max", "Air", "Duo", "Eco", "Sport", "Home", "Lite", "Compact", "Atlas"),
    *("Orbit", "Nova", "Terra", "Vista", "Fjord", "Comet", "Breeze", "Pulse", "Ember", "Drift", "Summit", "Grove"),
)
THINGS: Final = (
    *("headset", "kettle", "vacuum cleaner", "laptop", "coffee machine", "phone case", "backpack", "lamp"),
    *("toaster", "monitor", "keyboard", "office chair", "blender", "smart watch", "speaker", "mattress", "jacket"),
    *("rice cooker", "router", "camera", "drill", "sewing machine", "tablet", "bicycle helmet", "air purifier"),
    *("hair dryer", "desk", "printer", "tent", "sleeping bag", "power bank", "running belt", "electric toothbrush"),
    *("bookshelf", "stroller", "doorbell", "thermostat", "projector", "microphone", "guitar", "yoga mat", "suitcase"),
    *("umbrella", "frying pan", "knife set", "dishwasher", "freezer", "washing machine", "tumble dryer", "oven"),
    *("microwave", "juicer", "waffle iron", "scale", "humidifier", "fan heater", "radiator", "alarm clock"),
    *("curtain rail", "wardrobe", "sofa bed", "armchair", "rug", "mirror", "shower head", "tap", "towel warmer"),
    *("lawn mower", "hedge trimmer", "garden hose", "barbecue", "parasol", "hammock", "trampoline", "sandpit"),
    *("aquarium", "cat tree", "dog bed", "bird feeder", "telescope", "spyglass", "metronome", "music stand"),
    *("drum pad", "violin bow", "turntable", "amplifier", "soundbar", "remote control", "memory card", "webcam"),
    *("graphics tablet", "docking station", "label printer", "shredder", "laminator", "whiteboard", "desk pad"),
    *("fountain pen", "sketchbook", "easel", "loom", "spinning wheel", "kiln", "soldering iron", "multimeter"),
    *("workbench", "ladder", "wheelbarrow", "chainsaw", "log splitter", "snow shovel", "sledge", "ice scraper"),
    *("kayak", "life jacket", "snorkel", "surfboard", "climbing rope", "carabiner", "head torch", "compass"),
    *("pressure cooker", "pasta machine", "ice cream maker", "bread bin", "mortar", "teapot", "decanter", "corkscrew"),
    *("blood pressure monitor", "hearing aid", "walking frame", "heat pad", "massage gun", "epilator"),
    *("child seat", "high chair", "baby monitor", "night light", "bottle warmer", "play kitchen", "rocking horse"),
)
COLOURS: Final = (
    *("black", "white", "grey", "blue", "green", "red", "silver", "beige", "navy", "teal", "burgundy", "mustard"),
    *("olive", "lilac", "copper", "ivory", "turquoise", "anthracite", "coral", "sand", "mint", "plum", "ochre"),
)
FAULTS: Final = (
    *("it does not switch on any more", "the display stays black", "the battery lasts an hour at most"),
    *("it makes a grinding noise", "the lid does not close", "there is a crack along the back"),
    *("it leaks at the bottom", "one of the feet is missing", "the button on the left is stuck"),
    *("it smells of burnt plastic", "the cable is frayed near the plug", "the hinge squeaks and wobbles"),
    *("it trips the fuse", "the zip has come apart", "the left side is completely silent"),
    *("it overheats within minutes", "the seam is torn", "the paint flakes off", "it blinks three times and stops"),
    *("the motor hums without turning", "there is rust around the screws", "the glass is scratched all over"),
    *("the charging port is loose", "it shows the wrong temperature", "the handle broke off"),
    *("the fan rattles", "the touch panel ignores my fingers", "it restarts every other minute"),
    *("the rubber seal is brittle", "water drips out of the valve", "the wheel is bent"),
    *("the image flickers in green", "it vibrates across the table", "the timer runs backwards"),
    *("the magnet does not hold", "the spring has snapped", "the filter light never goes out"),
    *("the thread is stripped", "the lens is fogged from the inside", "the strap tears at the buckle"),
    *("the speaker crackles in the bass", "the blade is blunt", "the pump loses pressure overnight"),
)
PLACES: Final = (
    *("the kitchen", "the living room", "my office", "the bedroom", "the garage", "the bathroom", "our holiday flat"),
    *("the nursery", "the cellar", "the classroom", "my studio", "the workshop", "the garden shed", "the balcony"),
    *("a waiting room", "the staff canteen", "the student residence", "my caravan", "the parish hall", "the attic"),
    *("a hotel lobby", "our bakery", "the practice", "a boat cabin", "the greenhouse", "a barn", "the veranda"),
    *("the sports club", "the laundry", "a rehearsal room", "the museum shop", "an allotment", "the library"),
)
OCCASIONS: Final = (
    *("the birthday party", "the holidays", "the wedding", "the new school year", "the move", "the graduation"),
    *("the summer party", "the exam", "the job interview", "the anniversary", "the long flight", "the baby shower"),
    *("the marathon", "the concert", "the trade fair", "the christening", "the choir trip", "the camping weekend"),
    *("the regatta", "Easter", "the school play", "the harvest festival", "the farewell dinner", "the opening night"),
    *("the hike in the Alps", "the village fete", "the photo shoot", "the first snow", "the housewarming", "Advent"),
    *("the audit", "the chess tournament", "the class reunion", "the film premiere", "the silver wedding", "carnival"),
)
RELATIVES: Final = (
    *("mother", "husband", "wife", "father", "daughter", "son", "partner", "sister", "brother", "grandmother"),
    *("neighbour", "flatmate", "aunt", "cousin", "grandfather", "boss", "niece", "nephew", "uncle", "godchild"),
    *("mother-in-law", "stepson", "landlady", "teacher", "trainee", "carer", "goddaughter", "brother-in-law"),
)
JOBS: Final = (
    *("a nurse", "a teacher", "a driver", "a carpenter", "a student", "an accountant", "a chef", "an electrician"),
    *("a midwife", "a gardener", "a photographer", "a translator", "a baker", "a physiotherapist", "a plumber"),
    *("a musician", "an architect", "a farmer", "a tailor", "a librarian", "a journalist", "a hairdresser"),
    *("a vet", "a surveyor", "an optician", "a welder", "a beekeeper", "a sailor", "a potter", "a judge"),
    *("a roofer", "a florist", "a locksmith", "a paramedic", "a piano tuner", "a geologist", "a watchmaker"),
    *("a stage manager", "a dental technician", "a chimney sweep", "a glazier", "a cartographer", "an upholsterer"),
)
CITIES: Final = (
    *("London", "Berlin", "Madrid", "Paris", "Vienna", "Hamburg", "Barcelona", "Munich", "Lisbon", "Dublin", "Milan"),
    *("Zurich", "Leeds", "Cologne", "Porto", "Lyon", "Warsaw", "Prague", "Copenhagen", "Stockholm", "Manchester"),
    *("Valencia", "Rotterdam", "Antwerp", "Graz", "Basel", "Bristol", "Glasgow", "Oslo", "Helsinki", "Turin"),
    *("Bologna", "Seville", "Nantes", "Toulouse", "Leipzig", "Dresden", "Krakow", "Brno", "Ghent", "Utrecht"),
    *("Cork", "Galway", "Cardiff", "Belfast", "Aarhus", "Malmo", "Bergen", "Turku", "Tallinn", "Riga", "Vilnius"),
    *("Bratislava", "Budapest", "Zagreb", "Ljubljana", "Split", "Sofia", "Bucharest", "Athens", "Patras", "Nicosia"),
    *("Valletta", "Palermo", "Bari", "Trieste", "Innsbruck", "Salzburg", "Lucerne", "Geneva", "Dijon", "Rennes"),
    *("Bilbao", "Oviedo", "Coimbra", "Braga", "Faro", "Freiburg", "Kiel", "Rostock", "Erfurt", "Kassel", "Norwich"),
    *("Exeter", "York", "Durham", "Inverness", "Dundee", "Swansea", "Limerick", "Lund", "Uppsala", "Tampere"),
    *("Tromso", "Reykjavik", "Lublin", "Gdansk", "Wroclaw", "Olomouc", "Kosice", "Szeged", "Debrecen", "Maribor"),
    *("Rijeka", "Novi Sad", "Skopje", "Plovdiv", "Varna", "Cluj", "Iasi", "Thessaloniki", "Chania", "Limassol"),
)
STREETS: Final = (
    *("Mill", "Church", "Station", "Park", "Garden", "High", "Bridge", "River", "Meadow", "Linden", "School", "Castle"),
    *("Harbour", "Orchard", "Market", "Abbey", "Willow", "Chestnut", "Quarry", "Weaver", "Tanner", "Cooper", "Fisher"),
    *("Juniper", "Larch", "Heron", "Kingfisher", "Otter", "Foxglove", "Bramble", "Clover", "Thistle", "Saffron"),
    *("Copperfield", "Lantern", "Anchor", "Compass", "Beacon", "Granary", "Priory", "Vicarage", "Toll", "Drovers"),
    *("Hawthorn", "Elder", "Rowan", "Aspen", "Cedar", "Cypress", "Poplar", "Sycamore", "Blackthorn", "Whitebeam"),
)
STREET_KINDS: Final = ("Street", "Road", "Lane", "Avenue", "Close", "Square", "Way", "Row", "Terrace", "Hill", "Court")
COUNTRIES: Final = (
    *("GB", "DE", "FR", "ES", "IE", "AT", "CH", "NL", "PT", "IT", "BE", "SE", "DK", "PL", "NO", "FI", "CZ", "JP"),
    *("BR", "US", "CA", "TH", "TW", "HK", "SG", "GR", "HU", "RO", "HR", "SI", "SK", "EE", "LV", "LT", "BG", "MT"),
)
CARRIERS: Final = (
    *("ParcelOne", "NordPost", "SwiftBox", "Kestrel Express", "Postina", "BlueVan", "Cargolio", "Hermod"),
    *("Tramontana Freight", "CityBike Courier", "Alpenbote", "Rapidelo"),
)
PLANS: Final = ("Plus", "Family", "Premium", "Basic", "Student", "Team", "Unlimited", "Business", "Duo", "Lifetime")
DEVICES: Final = (
    *("iPhone 13", "Galaxy S22", "iPad", "Pixel 7", "iPhone SE", "Galaxy A52", "MacBook", "Windows laptop"),
    *("Android tablet", "Fairphone 4", "Xperia 5", "Moto G", "Chromebook", "Linux desktop", "Redmi Note 11"),
    *("Nokia 6", "Kindle", "Apple Watch", "smart television", "e-reader", "OnePlus 9", "ThinkPad", "old iMac"),
)
CODES: Final = (
    *("HTTP 502", "PAY-3DS-FAIL", "AUTH-429", "HTTP 504", "SYNC-TIMEOUT", "PAY-DECLINED", "CARD-EXPIRED"),
    *("HTTP 403", "ADDR-INVALID", "OTP-MISMATCH", "NET-UNREACHABLE", "HTTP 500", "STOCK-LOCKED", "VAT-UNKNOWN"),
    *("TOKEN-STALE", "HTTP 409", "LABEL-REJECTED", "PAIR-REFUSED", "HTTP 413", "DISK-FULL", "CERT-UNTRUSTED"),
    *("LIMIT-REACHED", "HTTP 422", "QUOTA-EXCEEDED", "DNS-FAIL", "BIN-BLOCKED", "IBAN-CHECKSUM", "HTTP 451"),
)
MODULES: Final = (
    *("CheckoutView", "ImageCache", "LoginActivity", "PushService", "CartStore", "MapFragment", "ChatSocket"),
    *("BarcodeScanner", "SearchIndexer", "ThemeLoader", "WidgetProvider", "OrderHistory", "BluetoothBridge"),
)
COUPONS: Final = ("WELCOME", "SPRING", "SORRY", "LOYAL", "FRIEND", "SUMMER", "WINTER", "BUNDLE", "NEWHOME", "STUDENT")
CURRENCIES: Final = ("EUR", "USD", "GBP", "CHF", "SEK", "PLN", "CAD", "BRL", "DKK", "NOK", "AUD", "CZK")
COLLEAGUES: Final = (
    *("Marta", "Felix", "Joanna", "Idris", "Kirsten", "Matteo", "Bronwen", "Sven", "Yasmin", "Alasdair", "Corinne"),
    *("Nikola", "Thandi", "Gunnar", "Perpetua", "Leander", "Oksana", "Fionn", "Marguerite", "Anselm"),
)
MAIL_HOSTS: Final = ("example.com", "mail.example", "example.org", "post.example", "example.net", "inbox.example")
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
EMOJI: Final = ("🙂", "🙏", "😡", "😕", "👍", "😅", "😭", "📦", "💳", "🤔", "😤", "❤️", "🔥", "🚚", "🤷", "✨")
