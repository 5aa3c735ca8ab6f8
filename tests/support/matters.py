"""Dialogues about sixty matters: three messages of a person, and a later one on the same matter."""

from __future__ import annotations

from typing import Final, NamedTuple


class Matter(NamedTuple):
    """A matter: the messages of a session about it, and a message that continues it."""

    messages: tuple[str, str, str]
    later: str


_TEXT: Final = """
My invoice 4711 was charged twice
I paid 89 euros on Monday by card
Please refund one of the charges
Has the refund of the double charge arrived yet?

The washing machine leaks on every spin cycle
There is water under the drum door
It is a Bosch series 6
A technician looked at the leaking machine and says the door seal is torn

I want to fly to Lisbon in October
Two adults and one child, with a window seat
We need a hotel close to the beach
For the Lisbon trip, can we move the flight to Friday?

My laptop does not boot after the update
The screen stays black with a cursor
I have Windows 11 on it
I started the laptop in safe mode and the update rolled back

The kitchen walls need new paint
I think of a sage green, washable
The room has 14 square metres
How many litres of the green paint do I need for the kitchen?

My son has a maths exam about fractions
He confuses numerator and denominator
The exam is next Thursday
He practised fractions again, what else comes in the maths exam?

I would like to cancel my gym membership
The contract runs until March
I moved to another city
Did the gym confirm the cancellation of my membership?

The landlord wants to raise the rent by 15 percent
I have lived in the flat since 2018
The letter gives no reason
I answered the landlord about the rent increase, was that right?

My sourdough bread comes out flat
I feed the starter once a day
The oven is at 230 degrees
The starter doubled now but the bread is still dense

The insurance rejected my dental claim
They say the crown is not covered
The bill is 640 euros
I want to appeal against the rejected dental crown bill

The bicycle brakes squeak badly
They are hydraulic disc brakes from Shimano
I cleaned the rotor with alcohol
After sanding the pads the brakes still squeak

I need a birthday present for my mother
She loves gardening and turns 60
My budget is 80 euros
The gardening set for my mum is sold out, any other idea?

Our web server returns 502 errors since the deploy
Nginx logs say upstream timed out
We deployed version 2.3 yesterday
We rolled back the deploy and the 502 from nginx is gone

I lost my passport in Rome
My flight home leaves on Sunday
I already reported it to the police
The consulate asks for photos for the emergency passport

My dog scratches his ears all day
He is a six year old beagle
There is brown wax inside
The vet gave drops for the ears of my beagle, how often?

The tomatoes on my balcony have yellow leaves
I water them every evening
They stand in full sun
I fertilised the tomatoes but the leaves are still yellow

I want to learn Spanish before summer
I know about 200 words
I can study half an hour a day
I finished the first 200 Spanish flashcards, what grammar next?

The parcel from the shoe shop never arrived
Tracking says delivered to a neighbour
The order number is 88213
None of the neighbours has the shoe parcel, what now?

My tax return asks for home office days
I worked 140 days from home in 2025
I also bought a desk
Where in the tax return do I enter the desk for the home office?

The car makes a grinding noise when I brake
It is a Golf with 120000 kilometres
It happens only when cold
The garage says the brake discs of the Golf are worn, is 400 fair?

I am planning a wedding for 90 guests
The venue is a barn with no heating
The date is 12 September
Two wedding guests are vegan, does the caterer of the barn know?

My phone battery drains overnight
It is a Pixel 7, three years old
Battery saver is on
I removed the weather app and the Pixel battery lasts again

The court sent me a summons as a witness
The hearing is on 4 June in Cologne
I am abroad that week
The court accepts video for my witness hearing, what must I prepare?

I want to switch to a heat pump
The house is from 1975 with radiators
We burn 2000 litres of oil a year
The installer offers a heat pump with 9 kilowatts, is that enough?

The printer prints only blank pages
I changed the black cartridge
It is a Canon inkjet
I cleaned the print head and the printer still gives empty pages

My daughter refuses to eat vegetables
She is four years old
She eats only pasta and rice
We hid vegetables in the pasta sauce and she noticed

I have to write a eulogy for my grandfather
He was a carpenter and sailor
The funeral is on Saturday
Can you shorten the part about sailing in the eulogy?

The router loses the wifi every evening
We have fibre with 250 megabit
The signal is weak upstairs
I changed the wifi channel and the router still drops

My knee hurts after running
It began when I trained for ten kilometres
The pain is below the kneecap
I rested a week and the knee hurts again after two kilometres of running

We want to adopt a cat from the shelter
We live on the third floor without a garden
There is a child of seven
The shelter asks whether the balcony has a net for the cat

The piano teacher wants to cancel lessons at short notice
We paid for the whole term
She cancelled three times
The piano teacher offers to repeat the cancelled lessons

I need a query for monthly revenue in SQL
The table has order date and amount
We use Postgres
The revenue query counts cancelled orders, how do I exclude them?

The neighbour builds a fence on our land
The survey shows thirty centimetres
He says the old stone is the border
The neighbour offers money for the strip under the fence

My visa for Canada is still pending
I applied on 2 February
The job starts in May
The Canadian office asks for biometrics for my visa

The chocolate cake sinks in the middle
I bake it at 180 degrees for 35 minutes
I use two eggs
With three eggs the chocolate cake still sinks

I want to sell my old camera
It is a Nikon D750 with two lenses
The shutter count is 42000
Somebody offers 450 for the Nikon, should I accept?

The smoke alarm beeps every minute
I replaced the battery last year
It hangs in the hallway
A new battery is in and the smoke alarm beeps again

My thesis needs a better introduction
The topic is urban bees
My supervisor wants a research question
The supervisor likes the question on urban bees but wants fewer citations

We have mould in the bathroom corner
There is no window
We shower twice a day
The mould in the bathroom came back after the bleach

I was overcharged for roaming in Norway
The bill shows 74 euros for data
I had a roaming package
The provider says the package excludes Norway, can I dispute the roaming bill?

The swimming club needs a new website
They want a calendar and news
There is no budget for licences
The calendar on the club website shows the wrong month

My back hurts from sitting at the desk
I work nine hours at a screen
The chair has no lumbar support
With the new chair my back is better but my neck is stiff at the desk

I want to plant an apple tree
The garden has clay soil
It should stay below three metres
Which rootstock keeps the apple tree small on clay?

The bank blocked my credit card
I tried to pay in a shop in Turkey
The app shows suspicious activity
The bank unblocked the card but the payment in Turkey failed again

My resume has a gap of two years
I cared for my father
I apply as a nurse
The clinic asks about the gap in my resume, what do I say?

Our toddler wakes up at five every morning
He goes to bed at seven
The room is bright early
Since the blackout curtains the toddler wakes at six

The unit tests fail only on the build server
They pass on my machine
It is a timezone problem, I guess
I set the timezone to UTC and two tests still fail on the build server

I need a visa invitation letter for my aunt
She comes from Peru for three weeks
She stays with us
The embassy returned the invitation letter of my aunt without a signature

The dishwasher leaves white film on glasses
We have hard water
I use tabs
I refilled the salt and the glasses from the dishwasher are still cloudy

I want to invest 5000 euros for ten years
I do not like risk
I have no debts
Which of the funds for the 5000 euros has the lowest cost?

The drone does not connect to the controller
It is a Mini 3
The firmware is new
After pairing again the drone connects but shows no video

My grandmother wants to use video calls
She is 84 and has a tablet
She forgets passwords
The tablet of my grandmother rings but she cannot accept the video call

The choir needs a bus to Prague
We are 38 people with luggage
We leave on 3 July
The bus company for Prague wants a deposit of 30 percent

A wasp nest hangs under our roof
It is as big as a football
The children play below
The exterminator for the wasp nest comes on Tuesday, is it safe to stay?

My subscription of the newspaper renewed itself
I wanted to end it in January
They charged 120 euros
The newspaper says my notice came too late

The guitar string buzzes on the third fret
It is an acoustic Yamaha
I changed the strings
I raised the saddle of the Yamaha and the fret still buzzes

I got a parking ticket although I had paid
The machine printed the wrong plate
The fine is 25 euros
The city rejected my objection against the parking fine

We want to hike across the Alps in August
There are five stages with huts
My friend has vertigo
The second hut on the Alps hike is full, is there another route?

The school wants a vaccination certificate
My daughter lost her booklet
The doctor has retired
The new doctor found the vaccination records for the school

My coffee tastes sour since I have a new grinder
I use 18 grams for 36
The beans are light
With a finer grind the coffee is less sour but slow
"""

MATTERS: Final = tuple(
    Matter((first, second, third), later)
    for first, second, third, later in (block.split("\n") for block in _TEXT.strip().split("\n\n"))
)
